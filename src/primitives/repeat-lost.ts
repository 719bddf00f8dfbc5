import { isFleetError } from "../errors.ts";
import { monotonicMs } from "../internal/timers.ts";

/** A call that was out for longer has had its time: whoever waits for it is told. */
const PATIENCE_MS = 2000;

/**
 * Makes a call again whose answer was lost with its link soon after it was sent, as when a master is killed: the next one waits for the link, to
 * its own deadline. Only for calls that a repeat does not harm: `call` must bear the same id or number each time.
 */
export async function repeatLost<T>(call: () => Promise<T>): Promise<T> {
  const started = monotonicMs();
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const lost = isFleetError(error, "FLEET_STORE_UNAVAILABLE") && error.outcome === "unknown";
      if (!lost || monotonicMs() - started >= PATIENCE_MS) throw error;
    }
  }
}
