import { addMissing } from "../control/apply-program.ts";
import { unreadable } from "../control/damaged.ts";
import type { Log } from "../internal/log.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import type { FleetView, Store } from "../store/store.ts";
import type { Books } from "./books.ts";

export interface RecoveryParts {
  store: Store;
  books: Books;
  log: Log;
  /** Told that the store has lost what children had written. */
  emptied: () => Promise<void>;
}

interface Missing {
  /** What this worker knew when it found out; what it reads meanwhile may lack all of it. */
  known: FleetView | undefined;
  /** Whether the store has lost anything; else it only forgot this worker, which was away for long. Undefined while that is not known. */
  lost: boolean | undefined;
}

/**
 * Puts back what the store has lost, as this worker knew it last. Nothing that is there is changed or removed: others may have newer code
 * than this worker, and what they wrote is newer too. Any call of it can fail; all of it is done again, until it has come to its end once.
 */
export class Recovery {
  readonly #parts: RecoveryParts;
  #missing: Missing | undefined;

  constructor(parts: RecoveryParts) {
    this.#parts = parts;
  }

  /** Something may be missing still: `finish` is to be called. */
  get pending(): boolean {
    return this.#missing !== undefined;
  }

  /** The store does not know this worker. To be called before it registers anew. */
  async begin(): Promise<void> {
    const { store, books } = this.#parts;
    this.#missing ??= { known: books.view, lost: undefined };
    const missing = this.#missing;
    missing.lost ??= hasLost(await store.registry.view(), missing.known);
  }

  /** Whether desired state is missing in a view of the fleet, or shown as it was before. */
  look(view: FleetView): boolean {
    const known = this.#parts.books.view;
    if (known === undefined || behind(view, known).length === 0) return false;
    this.#missing ??= { known, lost: true };
    this.#missing.lost = true;
    return true;
  }

  async finish(): Promise<void> {
    const missing = this.#missing;
    if (missing === undefined) return;
    const { store, books, log, emptied } = this.#parts;
    const { registry } = store;
    const { known } = missing;
    const view = await registry.view();
    missing.lost = missing.lost === true || hasLost(view, known);
    // Before there is anything to place. A worker that is cordoned stays so; one that is not back yet finds it when it is.
    for (const { id: workerId, wish } of missing.lost ? (known?.workers ?? []) : []) {
      const now = view.workers.find(({ id }) => id === workerId)?.wish?.cordon;
      if (wish?.cordon !== undefined && now === undefined)
        await registry.setWish({ workerId, kind: "cordon", wish: wish.cordon });
    }
    for (const [name, desired, expected] of known === undefined ? [] : behind(view, known)) {
      const record = { by: `worker ${books.member.id}`, note: "put back: the store had lost it" };
      await registry.putDesired({ name, desired, expected, record });
    }
    if (missing.lost) {
      await addMissing(store, books.program, log);
      await emptied();
    }
    this.#missing = undefined;
  }
}

/** Desired state that `known` has and the store has lost, or of which it shows an older one, and with which generation. Pure. */
export function behind(
  view: Pick<FleetView, "desired" | "damaged">,
  known: Pick<FleetView, "desired">,
): [name: string, known: DesiredAutomation, present: number][] {
  const { desired } = view;
  // Nobody writes over what is there and cannot be read.
  const damaged = new Set(unreadable(view));
  return Object.entries(known.desired)
    .map(([name, before]): [string, DesiredAutomation, number] => {
      const present = Object.hasOwn(desired, name) ? desired[name]?.generation : undefined;
      return [name, before, present ?? 0];
    })
    .filter(([name, before, present]) => present < before.generation && !damaged.has(name));
}

/**
 * Whether the store has lost what was there, all of it or the last of it. A revision grows by one with each change: it does not go back, and
 * one that began after `known` was read, at the time of the store, is past that time. Pure.
 */
export function hasLost(
  view: Pick<FleetView, "revision" | "desired" | "damaged">,
  known: Pick<FleetView, "revision" | "desired" | "now"> | undefined,
): boolean {
  if (known === undefined) return true;
  return view.revision < known.revision || view.revision >= known.now || behind(view, known).length > 0;
}
