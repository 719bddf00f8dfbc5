// The producer: looks at each URL again and again, and emits what it saw.
//
// It runs in several slots. Every slot gets the whole list and looks only at the URLs that are its own, so no URL is asked twice
// and more slots, or more machines, need no change here.
import { defineContinuous } from "fleet-framework";
import { PINGER_OUT } from "../contracts.ts";
import { listening } from "../listening.ts";
import { PingerConfig } from "../pinger-config.ts";
import { timed } from "../timed.ts";

export default defineContinuous("url-pinger", {
  config: PingerConfig,
  output: PINGER_OUT,

  async runSlot(ctx) {
    const { urls, intervalSeconds, timeoutSeconds, startAfter } = ctx.config;
    if (startAfter !== undefined) await listening(startAfter, ctx.signal);

    // One loop per URL, all at the same time: a slow URL delays no other.
    const watch = async (url: string) => {
      for await (const _turn of ctx.loop({ everySeconds: intervalSeconds })) {
        // Asked in every turn, because the number of slots may change while this runs.
        if (!ctx.owns(url)) continue;
        const measurement = await timed({
          url,
          timeoutSeconds,
          stop: ctx.signal,
          ask: (signal) => get(url, signal),
        });
        await ctx.emit(measurement);
      }
    };
    await Promise.all(urls.map(watch));
  },
});

async function get(url: string, signal: AbortSignal) {
  const response = await fetch(url, { signal, headers: { "user-agent": "fleet-url-monitor" } });
  // The status is all that counts here: leave the body where it is.
  await response.body?.cancel();
  return { ok: response.ok, status: response.status };
}
