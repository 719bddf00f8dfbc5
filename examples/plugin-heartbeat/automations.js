import { defineContinuous } from "fleet-framework";
import { z } from "zod";
import { beat } from "./beat.js";

export default defineContinuous("heartbeat", {
  config: z.object({ everySeconds: z.number().positive().default(5) }),
  output: z.object({ slot: z.number(), host: z.string(), uptimeSeconds: z.number() }),
  async runSlot(ctx) {
    for await (const _ of ctx.loop({ everySeconds: ctx.config.everySeconds })) {
      await ctx.emit({ slot: ctx.slotId, ...beat() });
    }
  },
});
