// Another producer for the same stream: same name, same output, but it measures how long a TCP connection takes and asks nothing.
// `uptime` does not notice. Run it with `--config examples/url-monitor/fleet.tcp.config.ts`.
import { defineContinuous } from "fleet-framework";
import { PINGER_OUT } from "../contracts.ts";
import { knock, listening } from "../listening.ts";
import { PingerConfig } from "../pinger-config.ts";
import { timed } from "../timed.ts";

export default defineContinuous("url-pinger", {
  config: PingerConfig,
  output: PINGER_OUT,

  async runSlot(ctx) {
    const { urls, intervalSeconds, timeoutSeconds, startAfter } = ctx.config;
    if (startAfter !== undefined) await listening(startAfter, ctx.signal);
    const watch = async (url: string) => {
      for await (const _turn of ctx.loop({ everySeconds: intervalSeconds })) {
        if (!ctx.owns(url)) continue;
        const measurement = await timed({
          url,
          timeoutSeconds,
          stop: ctx.signal,
          // Whoever accepts the connection is up; there is no HTTP status to report.
          ask: async (signal) => {
            await knock(url, signal);
            return { ok: true, status: null };
          },
        });
        await ctx.emit(measurement);
      }
    };
    await Promise.all(urls.map(watch));
  },
});
