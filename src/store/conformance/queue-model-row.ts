import type { FailureReason, NewTask, TaskState } from "../../protocol/task.ts";
import type { QueueSettings } from "../queue-store.ts";

export interface ModelTask extends NewTask {
  seq: number;
  state: TaskState;
  attempts: number;
  crashes: number;
  interruptions: number;
  submittedAt: number;
  dueAt: number;
  expiresAt: number | null;
  finishedAt: number | null;
  /** Whether its time to live has ended with a start, and whether it had before the present claim. */
  started: boolean;
  startedBefore: boolean;
  token: string | null;
  settledBy: string | null;
  /** What `settledBy` was before the task began anew; a store may know it still. */
  formerlyBy: string | null;
  holder: string | null;
  leaseUntil: number | null;
  cancelling: boolean;
  reason: FailureReason | null;
  result: string | null;
}

/** A key's place in the row: by number, or where the port leaves open whether it kept the old one or took a new one, anywhere. */
type Place = number | "anywhere";

/** Whose turn it is among the keys; `""` stands for the tasks without a key. */
export class QueueModelRow {
  readonly #tasks: ReadonlyMap<string, ModelTask>;
  readonly #settings: QueueSettings;
  readonly #places = new Map<string, Place>();
  #last = 0;

  constructor(tasks: ReadonlyMap<string, ModelTask>, settings: QueueSettings) {
    this.#tasks = tasks;
    this.#settings = settings;
  }

  #of(key: string, state: "waiting" | "active"): ModelTask[] {
    return [...this.#tasks.values()].filter((task) => (task.key ?? "") === key && task.state === state);
  }

  waiting(key: string): ModelTask[] {
    return this.#of(key, "waiting").toSorted((a, b) => b.priority - a.priority || a.seq - b.seq);
  }

  /** How many more of a key could be claimed, the queue's concurrency left aside. */
  #room(key: string): number {
    const { keyConcurrency } = this.#settings;
    const waiting = this.waiting(key).length;
    if (key === "" || keyConcurrency === 0) return waiting;
    return Math.max(0, Math.min(waiting, keyConcurrency - this.#of(key, "active").length));
  }

  #keys(): string[] {
    return [...new Set([...this.#tasks.values()].map(({ key }) => key ?? ""))];
  }

  /** Applies one step: keys that can be claimed of from now on enter together, those that cannot leave. */
  step<T>(change: () => T): T {
    const before = new Map([...this.#places.keys()].map((key) => [key, this.waiting(key)]));
    const answer = change();
    this.#last += 1;
    for (const key of this.#keys()) {
      const were = before.get(key);
      if (this.#room(key) === 0) this.#places.delete(key);
      else if (were === undefined) this.#places.set(key, this.#last);
      // All that stood for it went, and others came in the same step.
      else if (!this.waiting(key).some((task) => were.includes(task))) this.#places.set(key, "anywhere");
    }
    for (const key of before.keys()) if (this.#room(key) === 0) this.#places.delete(key);
    return answer;
  }

  /** A task in place of another, under whatever key: where it leaves its key, and comes to one, is left open. */
  replaced({ key }: ModelTask): void {
    if (this.waiting(key ?? "").length === 1 && this.#places.has(key ?? ""))
      this.#places.set(key ?? "", "anywhere");
  }

  /** The tasks that may be claimed next: any of these, and no other. */
  next(): ModelTask[] {
    const active = [...this.#tasks.values()].filter(({ state }) => state === "active").length;
    if (this.#settings.concurrency > 0 && active >= this.#settings.concurrency) return [];
    const heads = [...this.#places].map(([key, place]) => ({
      place,
      task: this.waiting(key)[0] as ModelTask,
    }));
    const highest = Math.max(...heads.map(({ task }) => task.priority));
    const first = heads.filter(({ task }) => task.priority === highest);
    const lowest = Math.min(...first.map(({ place }) => (place === "anywhere" ? Infinity : place)));
    return first.filter(({ place }) => place === "anywhere" || place === lowest).map(({ task }) => task);
  }

  /** To be called once the task is active: its key goes to the end of the row, or leaves it. */
  served({ key }: ModelTask): void {
    this.#last += 1;
    if (this.#room(key ?? "") > 0) this.#places.set(key ?? "", this.#last);
    else this.#places.delete(key ?? "");
  }

  /** How many could be claimed, one after the other. */
  ready(): number {
    const { concurrency } = this.#settings;
    const active = [...this.#tasks.values()].filter(({ state }) => state === "active").length;
    const room = this.#keys().reduce((sum, key) => sum + this.#room(key), 0);
    return concurrency === 0 ? room : Math.max(0, Math.min(room, concurrency - active));
  }

  /** Keys at their limit that have tasks waiting. */
  busy(): { key: string; active: number; waiting: number }[] {
    return this.#keys()
      .filter((key) => key !== "" && this.waiting(key).length > 0 && this.#room(key) === 0)
      .toSorted((a, b) => (a < b ? -1 : 1))
      .map((key) => ({ key, active: this.#of(key, "active").length, waiting: this.waiting(key).length }));
  }
}
