// Another issuer with the same name and output: plain random tokens. It takes the first one's place, and no consumer is changed.
import { randomUUID } from "node:crypto";
import { defineContinuous } from "fleet-framework";
import { z } from "zod";
import { TOKEN_SECONDS, TOKENS } from "../contracts.ts";

export default defineContinuous("token-issuer", {
  config: z.object({ ahead: z.number().int().min(1).default(5) }),
  output: TOKENS,
  async runSlot(ctx) {
    while (!ctx.signal.aborted) {
      const validUntil = Date.now() + TOKEN_SECONDS * 1000;
      if ((await ctx.stream(TOKENS).length()) < ctx.config.ahead)
        await ctx.emit({ token: randomUUID(), validUntil, issuer: "random" });
      else await ctx.sleep(0.2);
    }
  },
});
