import { FleetError } from "../../errors.ts";
import { after, monotonicMs } from "../../internal/timers.ts";
import type { Database } from "./database.ts";
import { callError, isBusy, isFileFault, unavailable } from "./errors.ts";
import { rollback } from "./migrate.ts";
import { busyWaitMs } from "./retry.ts";

/**
 * All calls of one connection pass through one queue, in the order in which they were made.
 *
 * The calls of one turn of the event loop travel together: leading reads in one read transaction, everything from the first
 * write on in one `BEGIN IMMEDIATE` transaction, in portions short enough to hold neither the event loop nor the lock for
 * long. Nothing is awaited between BEGIN and COMMIT: a process that is frozen keeps the lock only where it was stopped within
 * that stretch, a third of a millisecond for one small call.
 *
 * While another process has the lock, the queue waits and tries again with timers, never inside SQLite; a call whose
 * deadline passes meanwhile fails, and was certainly not applied.
 */
export interface Writer {
  /** Runs `work` in a write transaction. `weight`: about how many rows it touches; `bytes`: how much memory it holds. */
  write<T>(work: () => T, options?: WriteOptions<T>): Promise<T>;
  /** Runs `work`, which must not write, on one consistent state that includes all calls made before. */
  read<T>(work: () => T): Promise<T>;
  /** Takes part in every transaction. */
  join(participant: Participant): void;
  /** Lets accepted calls settle; later ones fail with `FLEET_CLOSED`. */
  close(): Promise<void>;
}

export interface WriteOptions<T> {
  weight?: number;
  bytes?: number;
  /** Tried without the lock first; an answer other than undefined makes the write needless. */
  shortcut?: () => T | undefined;
}

/** A part that gathers changes in memory during a transaction. */
export interface Participant {
  /** Writes what was gathered; the transaction is still open. */
  flush(): void;
  /** The transaction is durable: forget what was gathered, tell who waits. Must not throw. */
  committed(): void;
  /** Nothing of it happened: forget. */
  rolledBack(): void;
}

const MAX_WEIGHT = 1000;
const MAX_MS = 5;
/** How long this process takes the lock again at once while its queue lasts. */
const HOG_MS = 25;
/** A refusal that is not older counts as others wanting the lock too; then the lock is left after each {@link MAX_MS}. */
const CROWD_MS = 1000;
const PAUSE_MS = 2;
/** What may wait in memory while the lock cannot be had. */
const MAX_QUEUED_CALLS = 50_000;
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;

/** Taken at load, so that tests with fake timers do not stop the store. */
const soon = setImmediate;

interface Job {
  write: boolean;
  weight: number;
  bytes: number;
  deadline: number;
  /** Runs in a transaction of its own, because it was in one that failed. */
  alone: boolean;
  work: () => unknown;
  shortcut: (() => unknown) | undefined;
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

export interface WriterOptions {
  /** Longest time that a call may wait for the lock. */
  deadlineMs: number;
  /** Most calls that may wait; default 50 000. */
  maxCalls?: number;
  afterCommit?: () => void;
}

export function createWriter(db: Database, options: WriterOptions): Writer {
  const { deadlineMs, maxCalls = MAX_QUEUED_CALLS, afterCommit } = options;
  const participants: Participant[] = [];
  let queue: Job[] = [];
  let queuedBytes = 0;
  let scheduled = false;
  /** When another process last had the lock that we wanted. */
  let refusedAt = Number.NEGATIVE_INFINITY;
  /** Since when this process has taken the lock again and again without a pause. */
  let hoggingSince = 0;
  let closed = false;
  let onEmpty: (() => void) | undefined;

  function enqueue<T>(
    write: boolean,
    work: () => unknown,
    { weight = 1, bytes = 0, shortcut }: WriteOptions<unknown> = {},
  ): Promise<T> {
    if (closed) return Promise.reject(new FleetError("FLEET_CLOSED", `store ${db.name} was closed`));
    if (queue.length >= maxCalls || queuedBytes + bytes > MAX_QUEUED_BYTES) {
      const what = `${queue.length} calls, ${Math.round(queuedBytes / 1024)} KiB`;
      return Promise.reject(
        new FleetError("FLEET_STORE_BUSY", `store ${db.name} does not keep up: ${what} are waiting already`, {
          retryable: true,
        }),
      );
    }
    return new Promise<T>((resolve, reject) => {
      const deadline = monotonicMs() + deadlineMs;
      const settle = resolve as (value: unknown) => void;
      queue.push({ write, weight, bytes, deadline, alone: false, work, shortcut, resolve: settle, reject });
      queuedBytes += bytes;
      startTurns();
    });
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    soon(turn);
  }

  function startTurns(): void {
    if (scheduled) return;
    hoggingSince = monotonicMs();
    schedule();
  }

  /**
   * Goes on with what is left. While others want the lock too, they are let in now and then: between two transactions of a long
   * queue it is free for microseconds only, which those who wait would hardly ever hit.
   */
  function proceed(): void {
    const now = monotonicMs();
    const crowded = now - refusedAt < CROWD_MS;
    if (now - hoggingSince < (crowded ? MAX_MS : HOG_MS)) return schedule();
    scheduled = true;
    after(PAUSE_MS, () => {
      hoggingSince = monotonicMs();
      turn();
    });
  }

  function turn(): void {
    scheduled = false;
    try {
      db.check();
      answerReads();
      if (queue.length > 0) commitPortion(takePortion());
    } catch (error) {
      if (isBusy(error)) return waitForLock();
      failAll(error);
    }
    if (queue.length > 0) proceed();
    else onEmpty?.();
  }

  /** Answers calls at the head of the queue for as long as they need no lock. */
  function answerReads(): void {
    const first = queue[0];
    if (first === undefined || (first.write && first.shortcut === undefined)) return;
    db.exec("BEGIN");
    let done = 0;
    try {
      const until = monotonicMs() + MAX_MS;
      for (const job of queue) {
        if (!answered(job)) break;
        done++;
        if (monotonicMs() >= until) break;
      }
    } finally {
      rollback(db);
      for (const job of queue.splice(0, done)) queuedBytes -= job.bytes;
    }
  }

  function answered(job: Job): boolean {
    const work = job.write ? job.shortcut : job.work;
    if (work === undefined) return false;
    try {
      const value = work();
      if (job.write && value === undefined) return false;
      job.resolve(value);
    } catch (error) {
      if (isBusy(error)) throw error;
      job.reject(callError(error, db.name));
    }
    return true;
  }

  /** The next calls to share a transaction; they leave the queue. */
  function takePortion(): Job[] {
    // Begun before any call is taken: when the lock is refused, the queue is as it was.
    db.exec("BEGIN IMMEDIATE");
    let weight = 0;
    let count = 0;
    for (const job of queue) {
      if (count > 0 && (job.alone || weight + job.weight > MAX_WEIGHT)) break;
      weight += job.weight;
      count++;
      if (job.alone) break;
    }
    return queue.splice(0, count);
  }

  function commitPortion(portion: Job[]): void {
    const until = monotonicMs() + MAX_MS;
    const values: unknown[] = [];
    let committing = false;
    try {
      for (const job of portion) {
        values.push(job.work());
        if (monotonicMs() >= until) break;
      }
      for (const participant of participants) participant.flush();
      committing = true;
      db.exec("COMMIT");
    } catch (error) {
      rollback(db);
      for (const participant of participants) participant.rolledBack();
      return blame(portion, error, committing);
    }
    queue.unshift(...portion.splice(values.length));
    for (const [index, job] of portion.entries()) {
      queuedBytes -= job.bytes;
      job.resolve(values[index]);
    }
    for (const participant of participants) participant.committed();
    afterCommit?.();
  }

  /**
   * A transaction failed and was undone. Refused as busy, its calls wait like any others; else they go again, each alone, so
   * that only the guilty one fails. Where the disk failed under the commit itself, nobody knows whether it took effect.
   */
  function blame(portion: Job[], error: unknown, committing: boolean): void {
    if (isBusy(error)) {
      queue.unshift(...portion);
      throw error;
    }
    if (portion.length > 1 && !isFileFault(error)) {
      for (const job of portion) job.alone = true;
      queue.unshift(...portion);
      return;
    }
    const outcome = committing && isFileFault(error) ? "unknown" : undefined;
    for (const job of portion) {
      queuedBytes -= job.bytes;
      job.reject(callError(error, db.name, outcome));
    }
  }

  function waitForLock(): void {
    const now = monotonicMs();
    // All calls have the same time, so the first to be late stand first.
    const inTime = queue.findIndex((job) => job.deadline > now);
    for (const job of queue.splice(0, inTime < 0 ? queue.length : inTime)) {
      queuedBytes -= job.bytes;
      const why = `other processes kept it locked for ${deadlineMs / 1000} s; nothing of this call was written`;
      job.reject(unavailable(db.name, why, { retryable: true }));
    }
    if (queue.length === 0) return onEmpty?.();
    refusedAt = now;
    scheduled = true;
    after(busyWaitMs(), () => {
      hoggingSince = monotonicMs();
      turn();
    });
  }

  function failAll(error: unknown): void {
    const failed = queue;
    queue = [];
    queuedBytes = 0;
    for (const job of failed) job.reject(callError(error, db.name));
  }

  return {
    write: (work, options) => enqueue(true, work, options),
    read: (work) => enqueue(false, work),
    join: (participant) => void participants.push(participant),
    close() {
      closed = true;
      if (queue.length === 0) return Promise.resolve();
      return new Promise((resolve) => {
        onEmpty = resolve;
      });
    },
  };
}
