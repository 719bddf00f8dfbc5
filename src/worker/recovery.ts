import { addMissing } from "../control/apply-program.ts";
import { isOwnFault, unreadable } from "../control/damaged.ts";
import { isFleetError } from "../errors.ts";
import { byName } from "../internal/by-name.ts";
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

type Cordon = NonNullable<NonNullable<FleetView["workers"][number]["wish"]>["cordon"]>;

/** What is put back leaves this: changed or removed by somebody from then on, it stays so. */
interface Missing {
  /** What this worker knew when it found out; what it reads meanwhile may lack all of it. */
  known: FleetView | undefined;
  /** Whether the store has lost anything; else it only forgot this worker, which was away for long. */
  lost: boolean;
  /** By worker: those that are to be put back. */
  cordons: Map<string, Cordon>;
  /** Automations of whose program all is there again. */
  added: Set<string>;
  /** Whether children have been told. */
  told: boolean;
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
    const view = await store.registry.view();
    const before = this.#missing;
    const known = books.view ?? before?.known;
    this.#missing = missingOf(known, hasLost(view, known));
    // This worker has not come to its end with what was lost before.
    if (before?.lost !== true) return;
    this.#missing.lost = true;
    for (const [id, cordon] of before.cordons) this.#missing.cordons.set(id, cordon);
  }

  /** Whether desired state is missing in a view of the fleet, or shown as it was before. */
  look(view: FleetView): boolean {
    const known = this.#parts.books.view;
    if (known === undefined || behind(view, known).length === 0) return false;
    if (this.#missing?.lost !== true) this.#missing = missingOf(known, true);
    return true;
  }

  /** What is refused keeps nothing else from being put back; the first such error is thrown at the end. */
  async finish(): Promise<void> {
    const missing = this.#missing;
    if (missing === undefined) return;
    const { store, books, log, emptied } = this.#parts;
    const { registry } = store;
    const view = await registry.view();
    if (!missing.lost && hasLost(view, missing.known)) Object.assign(missing, missingOf(missing.known, true));
    const { known, cordons, added } = missing;
    const faults: unknown[] = [];
    const attempt = async (write: () => Promise<unknown>) => {
      try {
        await write();
      } catch (error) {
        if (isFleetError(error, "FLEET_STORE_UNAVAILABLE") || isFleetError(error, "FLEET_CLOSED"))
          throw error;
        faults.push(error);
      }
    };
    // Before there is anything to place: what would be taken again soon is waited for. A worker that is cordoned stays so; one that is not back
    // yet finds it when it is.
    for (const [workerId, cordon] of cordons) {
      const now = view.workers.find(({ id }) => id === workerId)?.wish?.cordon;
      try {
        if (now === undefined) await registry.setWish({ workerId, kind: "cordon", wish: cordon });
        cordons.delete(workerId);
      } catch (error) {
        if (!isOwnFault(error)) throw error;
        faults.push(error);
      }
    }
    // What was read since then has all of it, and what came after it.
    const newest = books.view ?? known;
    for (const [name, desired, expected] of newest === undefined ? [] : behind(view, newest)) {
      const record = { by: `worker ${books.member.id}`, note: "put back: the store had lost it" };
      await attempt(() => registry.putDesired({ name, desired, expected, record }));
    }
    if (missing.lost) {
      const { program } = books;
      for (const automation of program.automations) {
        const { name } = automation.manifest;
        if (added.has(name)) continue;
        await attempt(async () => {
          await addMissing(store, { ...program, automations: [automation] }, log);
          added.add(name);
        });
      }
      if (!missing.told)
        await attempt(async () => {
          await emptied();
          missing.told = true;
        });
    }
    if (faults.length > 0) throw faults[0];
    this.#missing = undefined;
  }
}

function missingOf(known: FleetView | undefined, lost: boolean): Missing {
  const cordons = new Map<string, Cordon>();
  for (const { id, wish } of lost ? (known?.workers ?? []) : [])
    if (wish?.cordon !== undefined) cordons.set(id, wish.cordon);
  return { known, lost, cordons, added: new Set(), told: false };
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
 * A view with what this worker knew of desired state that is behind in it, for as long as that cannot be put back. Nobody places slots of what
 * is not there at all: they stay where they were. Pure.
 */
export function asKnown(view: FleetView, known: FleetView | undefined): FleetView {
  if (known === undefined) return view;
  const kept = behind(view, known);
  const unplaced = kept
    .map(([name]) => name)
    .filter((name) => !Object.hasOwn(view.desired, name) && !Object.hasOwn(view.assignments, name))
    .filter((name) => Object.hasOwn(known.assignments, name));
  return {
    ...view,
    desired: byName([
      ...Object.entries(view.desired),
      ...kept.map(([name, before]): [string, DesiredAutomation] => [name, before]),
    ]),
    assignments: byName([
      ...Object.entries(view.assignments),
      ...unplaced.map((name): [string, FleetView["assignments"][string]] => [
        name,
        known.assignments[name] ?? {},
      ]),
    ]),
  };
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
