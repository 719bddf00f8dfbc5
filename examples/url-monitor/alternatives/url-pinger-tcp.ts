// Another producer for the same stream: same name, same output, but it measures how long a TCP connection takes and asks nothing.
// `uptime` does not notice. Run it with `--config examples/url-monitor/fleet.tcp.config.ts`.
import { once } from "node:events";
import { connect } from "node:net";
import { defineContinuous } from "fleet-framework";
import { PINGER_OUT } from "../contracts.ts";
import { PingerConfig } from "../pinger-config.ts";
import { timed } from "../timed.ts";

export default defineContinuous("url-pinger", {
  config: PingerConfig,
  output: PINGER_OUT,

  async runSlot(ctx) {
    const { urls, intervalSeconds, timeoutSeconds } = ctx.config;
    const watch = async (url: string) => {
      for await (const _turn of ctx.loop({ everySeconds: intervalSeconds })) {
        if (!ctx.owns(url)) continue;
        const measurement = await timed({
          url,
          timeoutSeconds,
          stop: ctx.signal,
          ask: (signal) => knock(url, signal),
        });
        await ctx.emit(measurement);
      }
    };
    await Promise.all(urls.map(watch));
  },
});

/** Connects and hangs up. Whoever accepts the connection is up; there is no HTTP status to report. */
async function knock(url: string, signal: AbortSignal) {
  const { hostname, port, protocol } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  const socket = connect({ host, port: Number(port || (protocol === "https:" ? 443 : 80)) });
  try {
    await once(socket, "connect", { signal });
  } finally {
    socket.destroy();
  }
  return { ok: true, status: null };
}
