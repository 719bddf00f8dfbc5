// Borrows a session for each page, gives it back, and takes those out of the pool that turn out to be dead.
import { defineContinuous } from "fleet-framework";
import { z } from "zod";
import { FETCHER_OUT, SESSIONS } from "../contracts.ts";

export default defineContinuous("fetcher", {
  config: z.object({ url: z.url(), pauseSeconds: z.number().min(0) }),
  output: FETCHER_OUT,
  uses: { claim: [SESSIONS] },
  async runSlot(ctx) {
    const sessions = ctx.pool(SESSIONS).where({ site: "shop" });
    for await (const _ of ctx.loop({ everySeconds: ctx.config.pauseSeconds })) {
      const asked = performance.now();
      // Given back at the end of the block, also when something throws.
      await using lease = await sessions.claim({ holdSeconds: 10, waitSeconds: 5 });
      if (lease === null) continue;
      const waitedMs = Math.round(performance.now() - asked);
      const started = performance.now();
      const response = await fetch(`${ctx.config.url}/orders`, {
        headers: { cookie: lease.payload.cookie },
        signal: AbortSignal.any([ctx.signal, lease.signal]),
      });
      await response.text();
      const { status } = response;
      if (status === 401) await lease.retire("the shop does not know it any more");
      const ms = Math.round(performance.now() - started);
      await ctx.emit({ account: lease.payload.account, status, ms, waitedMs });
    }
  },
});
