import type { ClaimedTask, FailureReason, NewTask, Settlement, TaskState } from "../../protocol/task.ts";
import type { QueueSettings, QueueStats, SubmitOutcome } from "../queue-store.ts";
import { LEASE_MS } from "./queue-driver.ts";
import { type ModelTask, QueueModelRow } from "./queue-model-row.ts";

type Ending = Settlement extends infer S ? (S extends Settlement ? Omit<S, "id" | "token"> : never) : never;

/**
 * What a queue is, in the fewest words: a list of tasks, of which everything else is counted anew each time. It follows a store rather
 * than running ahead of it: where the port leaves a choice, the store makes it and the model checks that it was one.
 */
export class QueueModel {
  readonly tasks = new Map<string, ModelTask>();
  readonly totals: QueueStats["totals"] = {
    submitted: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
    retried: 0,
    crashed: 0,
    interrupted: 0,
    refused: 0,
    duplicates: 0,
  };
  readonly reasons: Partial<Record<FailureReason, number>> = {};
  readonly row: QueueModelRow;
  readonly settings: QueueSettings;
  /** Which task bears a duplicate key, and until when a key is throttled. */
  readonly #bearers = new Map<string, string>();
  readonly #throttled = new Map<string, number>();
  #seq = 0;
  now = 0;

  constructor(settings: QueueSettings) {
    this.settings = { ...settings };
    this.row = new QueueModelRow(this.tasks, this.settings);
  }

  in(state: TaskState): ModelTask[] {
    return [...this.tasks.values()].filter((task) => task.state === state);
  }

  heldBy(holder: string): ModelTask[] {
    return this.in("active").filter((task) => task.holder === holder);
  }

  submit(given: NewTask): { id?: string; outcome: SubmitOutcome } {
    if (this.tasks.has(given.id)) return { id: given.id, outcome: "repeated" };
    const { dedupe } = given;
    const bearer = dedupe && this.tasks.get(this.#bearers.get(dedupe.key) ?? "");
    if (dedupe?.onDuplicate === "throttle" && this.now < (this.#throttled.get(dedupe.key) ?? 0)) {
      this.totals.duplicates += 1;
      // Whose id it is told is left open where there is no bearer.
      return bearer === undefined ? { outcome: "ignored" } : { id: bearer.id, outcome: "ignored" };
    }
    if (dedupe && bearer) {
      const { onDuplicate } = dedupe;
      if (onDuplicate === "ignore" || onDuplicate === "throttle") {
        this.totals.duplicates += 1;
        return { id: bearer.id, outcome: "ignored" };
      }
      if (onDuplicate === "supersede") this.cancel(bearer.id);
      else if (bearer.state !== "active") {
        this.totals.duplicates += 1;
        this.#write(bearer, { ...given, id: bearer.id });
        return { id: bearer.id, outcome: "replaced" };
      }
    }
    const task = { seq: (this.#seq += 1), submittedAt: this.now } as ModelTask;
    this.tasks.set(given.id, task);
    this.#write(task, given);
    this.totals.submitted += 1;
    if (dedupe) this.#bearers.set(dedupe.key, given.id);
    if (dedupe?.onDuplicate === "throttle") this.#throttled.set(dedupe.key, this.now + dedupe.windowMs);
    return { id: given.id, outcome: "submitted" };
  }

  /** Puts a submission's payload and options into a task and lets its life begin. */
  #write(task: ModelTask, given: NewTask): void {
    const { key, dedupe, ...rest } = given;
    Object.assign(task, rest, { key, dedupe, cancelling: false, result: null });
    Object.assign(task, { token: null, holder: null, leaseUntil: null });
    const debounced = dedupe?.onDuplicate === "debounce";
    this.#begin(task, this.now + (debounced ? dedupe.windowMs : given.delayMs));
  }

  #begin(task: ModelTask, dueAt: number): void {
    Object.assign(task, { attempts: 0, crashes: 0, interruptions: 0, reason: null, finishedAt: null });
    Object.assign(task, { started: false, startedBefore: false });
    Object.assign(task, { formerlyBy: task.settledBy ?? task.formerlyBy ?? null, settledBy: null });
    task.dueAt = dueAt;
    task.state = dueAt > this.now ? "scheduled" : "waiting";
    task.expiresAt = task.ttlMs > 0 ? dueAt + task.ttlMs : null;
  }

  /** The answers that a store may give. */
  settle(settlement: Settlement): ("settled" | "lease-lost")[] {
    const task = this.tasks.get(settlement.id);
    if (task === undefined) return ["lease-lost"];
    if (task.settledBy === settlement.token) return ["settled"];
    if (task.formerlyBy === settlement.token) return ["settled", "lease-lost"];
    if (task.state !== "active" || task.token !== settlement.token) return ["lease-lost"];
    task.settledBy = settlement.token;
    this.#end(task, settlement);
    return ["settled"];
  }

  #end(task: ModelTask, how: Ending): void {
    const asked = task.cancelling;
    Object.assign(task, { holder: null, leaseUntil: null, token: null, cancelling: false });
    if (how.outcome === "completed" || how.outcome === "failed") task.attempts += 1;
    if (how.outcome === "crashed") {
      task.crashes += 1;
      this.totals.crashed += 1;
    }
    if (how.outcome === "interrupted") {
      task.interruptions += 1;
      this.totals.interrupted += 1;
    }
    if (how.outcome === "returned") task.started = task.startedBefore;
    if (how.outcome === "completed") {
      task.result = how.result;
      this.#finish(task, "completed", null);
    } else if (how.outcome === "cancelled" || asked) this.#finish(task, "cancelled", null);
    else if (how.outcome === "failed" && (how.final || task.attempts >= task.maxAttempts))
      this.#finish(task, "failed", how.reason);
    else if (how.outcome === "crashed" && task.crashes >= this.settings.crashLimit)
      this.#finish(task, "failed", "poison");
    else {
      const pause = how.outcome === "failed" ? how.retryInMs : 0;
      task.state = pause > 0 ? "scheduled" : "waiting";
      if (pause > 0) task.dueAt = this.now + pause;
      if (how.outcome === "failed") this.totals.retried += 1;
    }
  }

  #finish(task: ModelTask, state: "completed" | "failed" | "cancelled", reason: FailureReason | null): void {
    Object.assign(task, { state, reason, finishedAt: this.now });
    this.totals[state] += 1;
    if (reason !== null) this.reasons[reason] = (this.reasons[reason] ?? 0) + 1;
    const key = task.dedupe?.key ?? "";
    if (this.#bearers.get(key) === task.id) this.#bearers.delete(key);
  }

  reclaim(): number {
    const lost = this.in("active").filter(({ leaseUntil }) => (leaseUntil ?? 0) <= this.now);
    for (const task of lost) this.#end(task, { outcome: "crashed", error: "" });
    return lost.length;
  }

  /** What a step does about the time that has passed. */
  pass(): { reclaimed: number; expired: number } {
    const reclaimed = this.reclaim();
    for (const task of this.in("scheduled")) if (task.dueAt <= this.now) task.state = "waiting";
    const over = this.in("waiting").filter(
      ({ expiresAt, started }) => !started && expiresAt !== null && expiresAt <= this.now,
    );
    for (const task of over) this.#finish(task, "failed", "expired");
    return { reclaimed, expired: over.length };
  }

  forget(): number {
    const { keepMs, keepFailedMs } = this.settings;
    const old = [...this.tasks.values()].filter(
      ({ state, finishedAt }) =>
        finishedAt !== null && finishedAt + (state === "failed" ? keepFailedMs : keepMs) <= this.now,
    );
    for (const { id } of old) this.tasks.delete(id);
    return old.length;
  }

  claim(holder: string, { id, token }: ClaimedTask): void {
    const task = this.tasks.get(id) as ModelTask;
    Object.assign(task, { state: "active", holder, token, leaseUntil: this.now + LEASE_MS });
    Object.assign(task, { startedBefore: task.started, started: true });
  }

  keep(holder: string): { id: string; token: string | null; cancelling: boolean }[] {
    return this.heldBy(holder).map((task) => {
      task.leaseUntil = this.now + LEASE_MS;
      return { id: task.id, token: task.token, cancelling: task.cancelling };
    });
  }

  lose(holders: readonly string[], crashed: readonly string[]): { crashed: number; interrupted: number } {
    const sum = { crashed: 0, interrupted: 0 };
    for (const task of this.in("active").filter(({ holder }) => holders.includes(holder ?? ""))) {
      const outcome = crashed.includes(task.id) ? "crashed" : "interrupted";
      sum[outcome] += 1;
      this.#end(task, { outcome, error: "" });
    }
    return sum;
  }

  cancel(id: string): "cancelled" | "cancelling" | "finished" | "unknown" {
    const task = this.tasks.get(id);
    if (task === undefined) return "unknown";
    if (task.state === "completed" || task.state === "failed") return "finished";
    if (task.state === "active") {
      task.cancelling = true;
      return "cancelling";
    }
    if (task.state !== "cancelled") this.#finish(task, "cancelled", null);
    return "cancelled";
  }

  retry(id: string): "waiting" | "not-finished" | "completed" | "unknown" {
    const task = this.tasks.get(id);
    if (task === undefined) return "unknown";
    if (task.state === "completed") return "completed";
    if (task.state !== "failed" && task.state !== "cancelled") return "not-finished";
    this.#begin(task, this.now);
    const key = task.dedupe?.key;
    if (key !== undefined && !this.#bearers.has(key)) this.#bearers.set(key, id);
    return "waiting";
  }
}
