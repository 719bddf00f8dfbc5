// What commands that wait see of the fleet: a store or a master that is away for a while ends no wait.
import { FleetError, isFleetError } from "../errors.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { FleetView, Registry } from "../store/store.ts";

export class PatientView {
  readonly #registry: Pick<Registry, "view">;
  #awaySince: number | undefined;
  #error: unknown;

  constructor(registry: Pick<Registry, "view">) {
    this.#registry = registry;
  }

  /** Undefined while the store does not answer. */
  async look(): Promise<FleetView | undefined> {
    const asked = monotonicMs();
    try {
      const view = await this.#registry.view();
      this.#awaySince = undefined;
      return view;
    } catch (error) {
      if (!isFleetError(error) || !error.retryable) throw error;
      this.#awaySince ??= asked;
      this.#error = error;
      return undefined;
    }
  }

  /** Seconds since it has not answered; 0 while it does. */
  get awaySeconds(): number {
    return this.#awaySince === undefined ? 0 : (monotonicMs() - this.#awaySince) / 1000;
  }

  /** What a wait ends with whose end nobody knows. */
  away(words: string): FleetError {
    const seconds = Math.round(this.awaySeconds);
    return new FleetError(
      "FLEET_STORE_UNAVAILABLE",
      `${words}: the store has not answered for ${seconds} s, so it is not known how far it is`,
      { retryable: true, cause: this.#error },
    );
  }
}
