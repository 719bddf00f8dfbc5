// The consumer: takes the measurements off the stream and keeps the score of each URL.
import { defineContinuous } from "fleet-framework";
import { PINGER_OUT } from "../contracts.ts";
import { describeMeasurement, LiveTable } from "../display.ts";
import { Score } from "../score.ts";

export default defineContinuous("uptime", {
  // Declared for everybody who looks at the fleet: `uptime` reads what `url-pinger` emits.
  uses: { pop: [PINGER_OUT] },

  async runSlot(ctx) {
    const scores = new Map<string, Score>();
    const table = process.stdout.isTTY ? new LiveTable(process.stdout, scores) : undefined;

    // Takes one entry after the other, waits where there is none, and ends when the slot is to end. Each entry goes to exactly one
    // consumer, so a second slot of `uptime` would see the other half.
    for await (const measurement of ctx.stream(PINGER_OUT)) {
      const score = scores.get(measurement.url) ?? new Score();
      scores.set(measurement.url, score);
      score.add(measurement);

      if (table !== undefined) table.changed();
      else console.log(describeMeasurement(measurement, score));
    }
    table?.close();
  },
});
