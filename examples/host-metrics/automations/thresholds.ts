// The consumer: judges each reading and says on the event bus when one goes too far, and when it is over.
import { defineContinuous } from "fleet-framework";
import { z } from "zod";
import { METRICS, METRICS_OUT, type Alert, type Metric, type Reading } from "../contracts.ts";
import { judge } from "../hysteresis.ts";

const limit = z.number().min(0).max(100).default(90);

export default defineContinuous("thresholds", {
  config: z.object({
    limits: z.object({ cpu: limit, memory: limit, disk: limit }).prefault({}),
    /** How far below its limit a value must fall until its alert is over, in percent points. */
    marginPercent: z.number().min(0).default(5),
    /** Events are not kept for those who come later, so an alert that goes on is said again. */
    repeatSeconds: z.number().positive().default(30),
  }),
  uses: {
    pop: [METRICS_OUT],
    publish: METRICS.map((metric) => ({ kind: "topic", name: `alerts.${metric}` })),
  },
  // The alerts that are on, as "host metric". Kept in the store, so a restart raises none of them a second time.
  state: z.array(z.string()),

  async runSlot(ctx) {
    const { limits, marginPercent, repeatSeconds } = ctx.config;
    const raised = new Set(await ctx.state.get());
    const saidAt = new Map<string, number>();

    for await (const reading of ctx.stream(METRICS_OUT)) {
      for (const metric of METRICS) {
        const value = reading[metric]?.usedPercent;
        if (value === undefined) continue;
        const key = `${reading.host} ${metric}`;
        const verdict = judge(raised.has(key), value, { raisePercent: limits[metric], marginPercent });

        if (verdict !== "unchanged") {
          if (verdict === "raised") raised.add(key);
          else raised.delete(key);
          await ctx.state.set([...raised]);
        }
        const due = raised.has(key) && reading.at - (saidAt.get(key) ?? 0) >= repeatSeconds * 1000;
        if (verdict === "unchanged" && !due) continue;
        saidAt.set(key, reading.at);
        const state = verdict === "unchanged" ? "ongoing" : verdict;
        await ctx.events.publish(`alerts.${metric}`, alert(reading, metric, state, value, limits[metric]));
      }
    }
  },
});

function alert(
  { host, at }: Reading,
  metric: Metric,
  state: Alert["state"],
  usedPercent: number,
  limitPercent: number,
): Alert {
  return { host, metric, state, usedPercent, limitPercent, at };
}
