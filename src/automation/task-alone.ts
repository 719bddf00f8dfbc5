/**
 * Which tasks run alone in their process, and when one may begin. Pure.
 *
 * After a crash of which nobody can tell the cause, all tasks that had begun in that process count it. One that has crashed twice, or that
 * another crash would end, then runs with nothing beside it: where it breaks its process again, it is the cause for sure; where it
 * was only a neighbour, it comes to its end unharmed. Not after its first crash already: that is what each task of a lost machine counts,
 * and these would go through what is left of the fleet one by one.
 */
import type { ClaimedTask } from "../protocol/task.ts";

/** Whatever the queue's limit is: each further crash among others would give them one, too. */
const MOST_AMONG_OTHERS = 2;

interface Slot {
  tasks(): readonly ClaimedTask[];
}

/** What a desk knows of them. `ready`: what it may hand out, those that are to run alone first, as `order` has put them. */
export class AloneRuns {
  readonly #from: number;
  /** The slot that one was given to. */
  #on: Slot | undefined;

  constructor(crashLimit: number) {
    this.#from = Math.max(1, Math.min(MOST_AMONG_OTHERS, crashLimit - 1));
  }

  /** Those that are to run alone come first. */
  order(ready: ClaimedTask[]): ClaimedTask[] {
    if (!ready.some((task) => this.#isOne(task))) return ready;
    return [...ready.filter((task) => this.#isOne(task)), ...ready.filter((task) => !this.#isOne(task))];
  }

  /** How many of what is ready are to run alone. */
  waiting(ready: readonly ClaimedTask[]): number {
    const others = ready.findIndex((task) => !this.#isOne(task));
    return others < 0 ? ready.length : others;
  }

  /** One runs or waits: nothing else may begin. */
  hold(ready: readonly ClaimedTask[]): boolean {
    const [first] = ready;
    return this.#on !== undefined || (first !== undefined && this.#isOne(first));
  }

  /** One waits, and nothing runs. Only right when all slots have taken what they were given. */
  mayBegin(ready: readonly ClaimedTask[], slots: Iterable<Slot>): boolean {
    const [first] = ready;
    if (this.#on !== undefined || first === undefined || !this.#isOne(first)) return false;
    for (const slot of slots) if (slot.tasks().length > 0) return false;
    return true;
  }

  /** This slot is given one. */
  begin(slot: Slot): void {
    this.#on = slot;
  }

  /** This slot has ended what it was given. */
  over(slot: Slot): void {
    if (this.#on === slot) this.#on = undefined;
  }

  #isOne({ crashes }: ClaimedTask): boolean {
    return crashes >= this.#from;
  }
}
