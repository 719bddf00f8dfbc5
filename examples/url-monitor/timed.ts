// What every kind of `url-pinger` does around its own way of asking: time it, limit it, and put a name to what went wrong.
import type { Measurement } from "./contracts.ts";

export interface Look {
  url: string;
  timeoutSeconds: number;
  /** Aborts when the slot is to end. */
  stop: AbortSignal;
  /** Asks once; gives up when its signal aborts. */
  ask: (signal: AbortSignal) => Promise<Pick<Measurement, "ok" | "status">>;
}

/** One measurement. Throws only when the slot is to end: what was cut off by that says nothing about the URL. */
export async function timed({ url, timeoutSeconds, stop, ask }: Look): Promise<Measurement> {
  const limit = new AbortController();
  const end = () => limit.abort(stop.reason);
  stop.addEventListener("abort", end, { once: true });
  const timeout = AbortSignal.timeout(timeoutSeconds * 1000);
  const late = () => limit.abort(timeout.reason);
  timeout.addEventListener("abort", late, { once: true });

  const started = performance.now();
  const when = () => ({
    latencyMs: Math.round((performance.now() - started) * 10) / 10,
    at: Date.now(),
  });
  try {
    stop.throwIfAborted();
    const { ok, status } = await ask(limit.signal);
    return { url, ok, status, error: null, ...when() };
  } catch (error) {
    if (stop.aborted) throw error;
    const reason = timeout.aborted ? `no answer within ${timeoutSeconds} s` : nameOf(error);
    return { url, ok: false, status: null, error: reason, ...when() };
  } finally {
    stop.removeEventListener("abort", end);
    timeout.removeEventListener("abort", late);
  }
}

/** `ECONNREFUSED`, `ENOTFOUND`, `CERT_HAS_EXPIRED`: fetch hides the telling part in `cause`. */
function nameOf(error: unknown): string {
  const { cause } = error as { cause?: unknown };
  const { code, message } = (cause ?? error) as { code?: unknown; message?: unknown };
  return String(code ?? message ?? error);
}
