/** The longest delay `setTimeout` keeps: a longer one overflows its 32-bit counter and fires at once. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;

export interface Timer {
  cancel(): void;
}

/** Runs `fn` once after `ms` (chunked past 2^31-1 ms). `unref` keeps the timer from holding the process open. */
export function after(ms: number, fn: () => void, options: { unref?: boolean } = {}): Timer {
  let left = Math.max(0, ms);
  let handle: ReturnType<typeof setTimeout>;
  const arm = () => {
    const step = Math.min(left, MAX_TIMEOUT_MS);
    handle = setTimeout(() => {
      left -= step;
      if (left > 0) arm();
      else fn();
    }, step);
    if (options.unref === true) handle.unref?.();
  };
  arm();
  return { cancel: () => clearTimeout(handle) };
}

/** Resolves after `ms`, or early (without an error) when `signal` aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      timer.cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = after(ms, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** Monotonic local time in milliseconds: for timeouts within one process, never for leases or anything stored. */
export function monotonicMs(): number {
  return performance.now();
}

/** Monotonic time that all processes of this machine share (`performance.now` begins anew in each), in milliseconds. */
export function machineMs(): number {
  const [seconds, nanos] = process.hrtime();
  return seconds * 1000 + nanos / 1e6;
}
