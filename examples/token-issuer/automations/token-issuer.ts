// Issues short-lived tokens, signed with a secret that only it knows, a few ahead of those who need them.
import { createHmac, randomBytes } from "node:crypto";
import { defineContinuous } from "fleet-framework";
import { z } from "zod";
import { TOKEN_SECONDS, TOKENS } from "../contracts.ts";

const secret = randomBytes(32);

export default defineContinuous("token-issuer", {
  config: z.object({ ahead: z.number().int().min(1).default(5) }),
  output: TOKENS,
  async runSlot(ctx) {
    for await (const _ of ctx.loop({ everySeconds: 0.2 })) {
      const missing = ctx.config.ahead - (await ctx.stream(TOKENS).length());
      for (let count = 0; count < missing; count++) await ctx.emit(issue());
    }
  },
});

function issue() {
  const validUntil = Date.now() + TOKEN_SECONDS * 1000;
  const body = `${randomBytes(8).toString("hex")}.${validUntil}`;
  return {
    token: `${body}.${createHmac("sha256", secret).update(body).digest("hex")}`,
    validUntil,
    issuer: "signed",
  };
}
