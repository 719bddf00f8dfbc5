import { encodePayload } from "../contracts/json.ts";
import type { PoolContract } from "../contracts/pool.ts";
import { check, payloadError } from "../contracts/validate.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { ItemTags } from "../protocol/pool.ts";
import type { Store } from "../store/store.ts";
import { toMs } from "./queue-options.ts";
import { settingsOf } from "./queue-settings.ts";

/** A wish is left again so long after the last time, in case that the store has lost it. */
const AGAIN_MS = 60_000;
/** Most kinds of claims that are remembered. */
const MOST = 10_000;

/**
 * Leaves in the pool what its contract says of refilling, for each kind of claim once: whoever leads the fleet goes by that (see
 * `control/refills.ts`). A claimer submits nothing itself: there may be fifty of them.
 */
export class PoolRefill {
  readonly #store: Store;
  readonly #contract: PoolContract;
  readonly #declare: () => Promise<void>;
  /** By `where`: when its wish was left last. */
  readonly #left = new Map<string, number>();

  constructor(store: Store, contract: PoolContract, declare: () => Promise<void>) {
    this.#store = store;
    this.#contract = contract;
    this.#declare = declare;
  }

  /** `given` is the `where` as the user wrote it, `where` the same as texts. */
  async wish(where: ItemTags, given: object): Promise<void> {
    const { refill, name: pool } = this.#contract;
    if (refill === undefined) return;
    const key = JSON.stringify(where);
    const now = monotonicMs();
    if (now - (this.#left.get(key) ?? Number.NEGATIVE_INFINITY) < AGAIN_MS) return;
    const what = `pool "${pool}": refill: payload for queue "${refill.submit.name}"`;
    const payload: unknown = refill.payload(given as never);
    const checked = await check(refill.submit.payload, payload);
    if (!checked.ok) throw payloadError(what, checked.issues);
    const json = encodePayload(what, payload);
    await this.#declare();
    // The leader knows no contract: it can only submit to a queue that has its settings.
    const queue = refill.submit.name;
    await this.#store.queues.declare({ queue, settings: settingsOf(refill.submit), as: "guest" });
    await this.#store.pools.putRefill({
      pool,
      refill: {
        where,
        below: refill.below,
        queue,
        payload: json,
        maxAttempts: refill.maxAttempts,
        timeoutMs: toMs(refill.timeoutSeconds),
      },
    });
    if (this.#left.size >= MOST) this.#left.clear();
    this.#left.set(key, now);
  }

  /** The store has lost the pool, and with it what was left there. */
  forget(): void {
    this.#left.clear();
  }
}
