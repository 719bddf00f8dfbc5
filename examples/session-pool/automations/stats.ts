// Adds up what was fetched, says it on the event bus and prints it.
import { defineContinuous } from "fleet-framework";
import { FETCHER_OUT, STATS } from "../contracts.ts";

const EVERY_SECONDS = 2;

export default defineContinuous("stats", {
  uses: { pop: [FETCHER_OUT], publish: [STATS] },
  async runSlot(ctx) {
    const stream = ctx.stream(FETCHER_OUT);
    for await (const _ of ctx.loop({ everySeconds: EVERY_SECONDS })) {
      const fetched = await stream.pop({ n: 10_000 });
      const good = fetched.filter(({ status }) => status === 200);
      const times = good.map(({ ms }) => ms).toSorted((a, b) => a - b);
      const stats = {
        fetched: good.length,
        refused: fetched.length - good.length,
        perSecond: good.length / EVERY_SECONDS,
        p50Ms: times[times.length >> 1] ?? 0,
      };
      await ctx.events.publish(STATS, stats);
      console.log(`${stats.perSecond.toFixed(1)} pages/s, ${stats.p50Ms} ms each, ${stats.refused} refused`);
    }
  },
});
