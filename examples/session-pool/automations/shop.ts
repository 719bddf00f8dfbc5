// Runs the web application, so that the example needs nothing from outside.
import { defineContinuous } from "fleet-framework";
import { z } from "zod";
import { Shop } from "../shop.ts";

export default defineContinuous("shop", {
  config: z.object({
    port: z.number().int(),
    accounts: z.record(z.string(), z.string()),
    sessionsPerAccount: z.number().int(),
    sessionSeconds: z.number(),
    pageMs: z.number(),
  }),
  async runSlot(ctx) {
    const shop = new Shop(ctx.config);
    await shop.listen(ctx.config.port);
    ctx.log.info("the shop is open", { port: ctx.config.port });
    try {
      while (!ctx.signal.aborted) await ctx.sleep(60);
    } finally {
      shop.close();
    }
  },
});
