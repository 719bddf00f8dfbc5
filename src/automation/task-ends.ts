import type { Settlement } from "../protocol/task.ts";

const MOST_SETTLED = 1000;
/** Bytes of results that travel in one call, about. */
const MOST_BYTES = 1024 * 1024;

/** How a claim has ended, and whose it was: null for what no slot has run. */
interface End {
  one: Settlement;
  slotId: number | null;
}

/** Ends that travel in one call. */
export type Ends = readonly End[];

/** The ends of a process's claims, until the store has answered each. */
export class TaskEnds {
  readonly #waiting: End[] = [];
  readonly #sending = new Set<Ends>();
  /** By slot id, also where a new run of the slot has begun. */
  readonly #unwritten = new Map<number, number>();

  add(one: Settlement, slotId: number | null): void {
    this.#waiting.push({ one, slotId });
    if (slotId !== null) this.#unwritten.set(slotId, (this.#unwritten.get(slotId) ?? 0) + 1);
  }

  /** How many are in no call. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Whether the end of some task of this slot is not written yet. */
  isOwedBy(slotId: number): boolean {
    return this.#unwritten.has(slotId);
  }

  /** Those with an end that is in no call. */
  slotsWaiting(): Set<number | null> {
    return new Set(this.#waiting.map(({ slotId }) => slotId));
  }

  tokens(): string[] {
    return [...this.#waiting, ...[...this.#sending].flat()].map(({ one }) => one.token);
  }

  /** For one call: the oldest, at most so many. */
  take(most: number): Ends {
    let count = 0;
    const limit = Math.min(most, this.#waiting.length, MOST_SETTLED);
    for (let bytes = 0; count < limit && bytes < MOST_BYTES; count++) {
      const { one } = this.#waiting[count] as End;
      if (one.outcome === "completed") bytes += one.result?.length ?? 0;
    }
    const ends = this.#waiting.splice(0, count);
    this.#sending.add(ends);
    return ends;
  }

  written(ends: Ends): void {
    this.#sending.delete(ends);
    for (const { slotId } of ends) {
      if (slotId === null) continue;
      const left = (this.#unwritten.get(slotId) ?? 0) - 1;
      if (left > 0) this.#unwritten.set(slotId, left);
      else this.#unwritten.delete(slotId);
    }
  }

  /** They travel again, before all others. */
  takeBack(ends: Ends): void {
    this.#sending.delete(ends);
    this.#waiting.unshift(...ends);
  }

  /** Nothing can be written any more. */
  forget(): void {
    this.#waiting.length = 0;
  }
}
