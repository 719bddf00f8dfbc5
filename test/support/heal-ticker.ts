// Four slots that turn ten times a second: each turn is noted before and after its emit, with the run it belongs to.
import { defineStream } from "../../src/contracts/stream.ts";
import { z } from "zod";

const ITEM = z.object({ run: z.string(), slot: z.number(), worker: z.string(), turn: z.number() });
export const TICKS = defineStream("ticker", ITEM);

export const TICKER = {
  "ticker.ts": `
    import { randomUUID } from "node:crypto";
    import { defineContinuous } from "fleet-framework";
    import { z } from "zod";
    import { note } from "./tools.ts";
    export default defineContinuous("ticker", {
      output: z.object({ run: z.string(), slot: z.number(), worker: z.string(), turn: z.number() }),
      async runSlot(ctx) {
        const run = randomUUID();
        note(ctx, "start", { run });
        for await (const turn of ctx.loop({ everySeconds: 0.1 })) {
          note(ctx, "turn", { run, turn: turn.index });
          await ctx.emit({ run, slot: ctx.slotId, worker: ctx.worker, turn: turn.index });
          note(ctx, "emitted", { run, turn: turn.index });
        }
        note(ctx, "stop", { run, reason: ctx.signal.reason });
      },
    });`,
  "fleet.config.ts": `
    import { defineConfig } from "fleet-framework";
    export default defineConfig({ automations: ["./ticker.ts"], deploy: { ticker: { slots: 4 } } });`,
};
