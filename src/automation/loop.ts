import { checkOptions, number } from "../contracts/options.ts";
import { monotonicMs, sleep } from "../internal/timers.ts";
import type { LoopOptions, Turn } from "./context.ts";

/**
 * The turns of `ctx.loop`: the first at once, then one every `everySeconds` from start to start. A turn that took longer is
 * followed at once, without catching up on those that were due meanwhile. Ends when `signal` aborts.
 */
export async function* turns(
  options: LoopOptions | undefined,
  signal: AbortSignal,
  hooks: { begin(): void; turn(): void; waiting(on: boolean): void },
): AsyncGenerator<Turn, undefined> {
  const { everySeconds = 0 } = checkOptions<Required<LoopOptions>>("loop", options, {
    everySeconds: number({ min: 0 }),
  });
  for (let index = 0; !signal.aborted; index++) {
    const started = monotonicMs();
    hooks.begin();
    yield { index };
    hooks.turn();
    const rest = started + everySeconds * 1000 - monotonicMs();
    if (rest > 0) {
      hooks.waiting(true);
      await sleep(rest, signal);
      hooks.waiting(false);
    } else {
      // Even a loop without a pause must let timers, messages and the abort through.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return undefined;
}
