// Logs in, once per task, and puts the session into the pool.
import { defineBatch, RetryAfter } from "fleet-framework";
import { z } from "zod";
import { HARVESTER, SESSIONS } from "../contracts.ts";

export default defineBatch("harvester", {
  tasks: HARVESTER,
  config: z.object({
    url: z.url(),
    accounts: z.record(z.string(), z.string()),
    /** A little less than the shop's own: a session that is about to end is not lent any more. */
    sessionSeconds: z.number(),
  }),
  uses: { put: [SESSIONS] },
  async runOne(task, ctx) {
    const { url, accounts, sessionSeconds } = ctx.config;
    // Whoever has room: accounts in turn, from another one each time.
    const names = Object.keys(accounts);
    const first = Math.floor(Math.random() * names.length);
    for (const user of [...names.slice(first), ...names.slice(0, first)]) {
      const response = await fetch(`${url}/login`, {
        method: "POST",
        body: new URLSearchParams({ user, password: accounts[user] ?? "" }),
        signal: ctx.signal,
      });
      await response.text();
      const cookie = /session=[^;]+/.exec(response.headers.get("set-cookie") ?? "")?.[0];
      if (cookie === undefined) continue;
      await ctx.pool(SESSIONS).put({
        payload: { cookie, account: user },
        tags: { site: task.payload.site },
        ttlSeconds: sessionSeconds,
      });
      return { account: user };
    }
    // Every account has as many sessions as it may: one of them ends soon.
    throw new RetryAfter(1);
  },
});
