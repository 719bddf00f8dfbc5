import { monotonicMs, sleep } from "../internal/timers.ts";
import type { Store } from "../store/store.ts";

/** Hints can be lost, so a waiting pop also looks by itself this often. */
const LOOK_MS = 1000;

/** Takes up to `n` entries; while there is none, waits up to `waitMs` for the first. */
export async function popWaiting(
  store: Store,
  args: { stream: string; n: number; waitMs: number },
): Promise<string[]> {
  const { stream, n } = args;
  const deadline = monotonicMs() + args.waitMs;
  const first = await store.streams.pop({ stream, n });
  if (first.length > 0 || args.waitMs <= 0) return first;

  let wake = new AbortController();
  const watch = store.streams.watch({ stream }, () => wake.abort());
  try {
    for (;;) {
      // Made before the pop, so that a hint in between still cuts the sleep short.
      wake = new AbortController();
      const entries = await store.streams.pop({ stream, n });
      const left = deadline - monotonicMs();
      if (entries.length > 0 || left <= 0) return entries;
      await sleep(Math.min(LOOK_MS, left), wake.signal);
    }
  } finally {
    await watch.close();
  }
}
