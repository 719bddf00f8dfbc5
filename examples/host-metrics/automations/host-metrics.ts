// The producer: reads processor, memory, disk and network of the machine that its slot runs on.
import { defineContinuous } from "fleet-framework";
import { z } from "zod";
import { METRICS_OUT } from "../contracts.ts";
import { Readings } from "../readings.ts";

export default defineContinuous("host-metrics", {
  config: z.object({
    everySeconds: z.number().min(0.1).default(1),
    /** The disk with this folder on it is looked at. */
    diskPath: z.string().default("/"),
  }),
  output: METRICS_OUT,

  async runSlot(ctx) {
    const { everySeconds, diskPath } = ctx.config;
    const readings = new Readings(diskPath);
    await readings.start();
    await ctx.sleep(everySeconds);
    for await (const _turn of ctx.loop({ everySeconds })) await ctx.emit(await readings.read());
  },
});
