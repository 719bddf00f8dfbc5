// Takes one token for each call: popped, so nobody else has it.
import { defineBatch, RetryAfter } from "fleet-framework";
import { CALLER, TOKENS } from "../contracts.ts";

export default defineBatch("caller", {
  tasks: CALLER,
  uses: { pop: [TOKENS] },
  async runOne(task, ctx) {
    const [token] = await ctx.stream(TOKENS).pop({ waitSeconds: 5 });
    if (token === undefined || token.validUntil < Date.now()) throw new RetryAfter(1);
    // Here the call would be made, with the token in its header.
    return { path: task.payload.path, issuer: token.issuer };
  },
});
