import type { FailureReason, TaskState } from "../../protocol/task.ts";
import type { QueueSettings, QueueStats } from "../queue-store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import { type Lanes, openLanes, roomOf } from "./queue-lanes.ts";

type Tallies = Pick<OpenQueue, "counts" | "totals" | "reasons">;
export type QueueColumns = readonly [
  ...[settings: string, tallies: string, lastToken: number, lastTurn: number],
  ...[claimable: number, readied: number, id: number],
];

/** A queue during one call: read once, changed in memory, written back once, all in one transaction. */
export interface OpenQueue {
  readonly id: number;
  readonly name: string;
  /** The time of this call. */
  readonly now: number;
  settings: QueueSettings;
  readonly counts: Record<TaskState, number>;
  readonly totals: QueueStats["totals"];
  readonly reasons: Partial<Record<FailureReason, number>>;
  lastToken: number;
  lastTurn: number;
  /** Whether the step before this one left something to claim. */
  claimable: boolean;
  /** Whether watches are told that there is something to claim, come what may. */
  announced: boolean;
  /** How often there was something to claim after there had been nothing. */
  readied: number;
  readonly lanes: Lanes;
  /** Tasks that somebody waited for, and which ended in this call. */
  readonly ended: string[];
  /** Its row as it lies in the table. */
  stored: QueueColumns;
}

/** Takes down, inside the transaction, what watches are to be told once it is durable. */
export interface QueueNews {
  readied(): void;
  /** Tasks that somebody waited for have ended. */
  ended(queue: string, ids: readonly string[]): void;
}

export interface QueueBook {
  /** Undefined for a queue that was never declared. */
  open(name: string): OpenQueue | undefined;
  create(name: string, settings: QueueSettings): OpenQueue;
  save(queue: OpenQueue): void;
  /** A fencing token: store microseconds, and greater than every one of this queue before. */
  nextToken(queue: OpenQueue): number;
  /** A token greater than all before, and than none after; also of a queue that is not there, or of which an older state is. */
  tokenBound(name: string, queue?: OpenQueue): number;
}

const READ = `SELECT settings, tallies, last_token, last_turn, claimable, readied, id FROM queues
  WHERE ns = ? AND name = ?`;
const CREATE = "INSERT INTO queues (ns, name, settings, tallies, last_token) VALUES (?, ?, ?, ?, ?)";
const WRITE = `UPDATE queues SET settings = ?, tallies = ?, last_token = ?, last_turn = ?, claimable = ?, readied = ?
  WHERE id = ?`;

const NO_TALLIES: Tallies = {
  counts: { scheduled: 0, waiting: 0, active: 0, completed: 0, failed: 0, cancelled: 0 },
  totals: {
    submitted: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
    retried: 0,
    crashed: 0,
    interrupted: 0,
    refused: 0,
    duplicates: 0,
  },
  reasons: {},
};

export function createQueueBook(parts: {
  db: Database;
  ns: string;
  clock: Clock;
  news: QueueNews;
}): QueueBook {
  const { db, ns, clock, news } = parts;
  // Survives a wipe: the clock counts milliseconds, and a claim within the same one must not get an old token.
  const lastGiven = new Map<string, number>();

  function open(name: string): OpenQueue | undefined {
    const row = db.sql(READ).get<QueueColumns>(ns, name);
    if (row === undefined) return undefined;
    const [settings, tallies, lastToken, lastTurn, claimable, readied, id] = row;
    const queue = {
      id,
      name,
      now: clock(),
      settings: JSON.parse(settings) as QueueSettings,
      ...(JSON.parse(tallies) as Tallies),
      lastToken,
      lastTurn,
      claimable: claimable === 1,
      announced: false,
      readied,
      ended: [],
      stored: row,
    };
    return Object.assign(queue, { lanes: openLanes(db, queue) });
  }

  return {
    open,

    create(name, settings) {
      const floor = Math.max(clock() * 1000, lastGiven.get(name) ?? 0);
      db.sql(CREATE).run(ns, name, JSON.stringify(settings), JSON.stringify(NO_TALLIES), floor);
      return open(name) as OpenQueue;
    },

    save(queue) {
      queue.lanes.writeBack();
      const claimable = readyCount(queue, 1) > 0;
      if (queue.announced || (claimable && !queue.claimable)) {
        queue.readied++;
        news.readied();
      }
      queue.claimable = claimable;
      queue.announced = false;
      if (queue.ended.length > 0) news.ended(queue.name, queue.ended.splice(0));
      const columns = columnsOf(queue);
      // A step that changed nothing leaves no trace in the log, so it wakes no other process.
      if (columns.some((column, i) => column !== queue.stored[i])) db.sql(WRITE).run(...columns);
      queue.stored = columns;
    },

    nextToken(queue) {
      queue.lastToken = tokenAfter(queue.name, queue.lastToken, queue.now);
      lastGiven.set(queue.name, queue.lastToken);
      return queue.lastToken;
    },

    tokenBound(name, queue) {
      const bound = tokenAfter(name, queue?.lastToken ?? 0, queue?.now ?? clock());
      lastGiven.set(name, bound - 1);
      if (queue !== undefined) queue.lastToken = bound - 1;
      return bound;
    },
  };

  function tokenAfter(name: string, lastToken: number, at: number): number {
    return Math.max(at * 1000, lastToken + 1, (lastGiven.get(name) ?? 0) + 1);
  }
}

function columnsOf(queue: OpenQueue): QueueColumns {
  const { settings, counts, totals, reasons, lastToken, lastTurn, claimable, readied, id } = queue;
  const tallies = JSON.stringify({ counts, totals, reasons } satisfies Tallies);
  return [JSON.stringify(settings), tallies, lastToken, lastTurn, Number(claimable), readied, id];
}

/** Most lanes that are looked at to say how many tasks could be claimed. */
const READY_LANES = 100;

/** How many tasks could be claimed at once, at least; 0 when none. */
export function readyCount(queue: OpenQueue, mostLanes = READY_LANES): number {
  const { settings, counts, lanes } = queue;
  const room = roomInQueue(queue);
  if (room === 0 || counts.waiting === 0) return 0;
  if (settings.keyConcurrency === 0) return Math.min(room, counts.waiting);
  let ready = 0;
  for (const lane of lanes.row(mostLanes)) ready += Math.min(lane.waiting, roomOf(lane, settings));
  return Math.min(room, ready);
}

/** How many more claims the queue as a whole may have. */
export function roomInQueue({ settings, counts }: Pick<OpenQueue, "settings" | "counts">): number {
  if (settings.concurrency === 0) return Number.POSITIVE_INFINITY;
  return Math.max(0, settings.concurrency - counts.active);
}

/** Unfinished tasks that are not active: what `maxLength` limits. */
export function lengthOf({ counts }: Pick<OpenQueue, "counts">): number {
  return counts.scheduled + counts.waiting;
}
