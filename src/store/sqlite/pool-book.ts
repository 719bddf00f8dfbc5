import type { PoolSettings, PoolStats } from "../pool-store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import { type Tallies, writeCounts } from "./pool-tags.ts";

export type PoolColumns = readonly [
  ...[settings: string, totals: string, lastToken: number, lastTurn: number],
  ...[moved: number, id: number],
];

/** A pool during one call: read once, changed in memory, written back once, all in one transaction. */
export interface OpenPool extends Tallies {
  readonly name: string;
  /** The time of this call. */
  readonly now: number;
  settings: PoolSettings;
  readonly totals: PoolStats["totals"];
  lastToken: number;
  lastTurn: number;
  /** How often something became free, or a line moved. */
  moved: number;
  /** Whether that happened in this call. */
  moving: boolean;
  /** Its row as it lies in the table. */
  stored: PoolColumns;
}

/** How calls come by their pool: opened once, and where the call may change it, written back once. */
export interface PoolBook {
  /** Undefined for a pool that was never declared. */
  open(name: string): OpenPool | undefined;
  create(name: string, settings: PoolSettings): OpenPool;
  save(pool: OpenPool): void;
  /** Inside a write transaction; `otherwise` answers for a pool that was never declared. */
  change<T>(name: string, work: (pool: OpenPool) => T, otherwise: () => T): T;
  look<T>(name: string, work: (pool: OpenPool) => T, otherwise: () => T): T;
  /** A fencing token: store microseconds, and greater than every one of this pool before. */
  nextToken(pool: OpenPool): number;
  /** A token greater than all before, and than none after; also of a pool that is not there, or of which an older state is. */
  tokenBound(name: string, pool?: OpenPool): number;
}

const READ = `SELECT settings, totals, last_token, last_turn, moved, id FROM pools WHERE ns = ? AND name = ?`;
const CREATE = "INSERT INTO pools (ns, name, settings, totals, last_token) VALUES (?, ?, ?, ?, ?)";
const WRITE =
  "UPDATE pools SET settings = ?, totals = ?, last_token = ?, last_turn = ?, moved = ? WHERE id = ?";

const NO_TOTALS: PoolStats["totals"] = {
  put: 0,
  claimed: 0,
  released: 0,
  expired: 0,
  retired: 0,
  removed: 0,
  leasesExpired: 0,
};

export function createPoolBook(parts: {
  db: Database;
  ns: string;
  clock: Clock;
  /** Called inside the transaction; watches are told once it is durable. */
  onMoved: () => void;
}): PoolBook {
  const { db, ns, clock, onMoved } = parts;
  // Survives a wipe: the clock counts milliseconds, and a claim within the same one must not get an old token.
  const lastGiven = new Map<string, number>();

  function open(name: string): OpenPool | undefined {
    const row = db.sql(READ).get<PoolColumns>(ns, name);
    if (row === undefined) return undefined;
    const [settings, totals, lastToken, lastTurn, moved, id] = row;
    return {
      id,
      name,
      now: clock(),
      settings: JSON.parse(settings) as PoolSettings,
      totals: JSON.parse(totals) as PoolStats["totals"],
      lastToken,
      lastTurn,
      moved,
      moving: false,
      pending: new Map(),
      stored: row,
    };
  }

  function save(pool: OpenPool): void {
    if (pool.moving) {
      pool.moved++;
      onMoved();
    }
    pool.moving = false;
    writeCounts(db, pool);
    const columns = columnsOf(pool);
    // A step that changed nothing leaves no trace in the log, so it wakes no other process.
    if (columns.some((column, i) => column !== pool.stored[i])) db.sql(WRITE).run(...columns);
    pool.stored = columns;
  }

  function tokenAfter(name: string, lastToken: number, at: number): number {
    return Math.max(at * 1000, lastToken + 1, (lastGiven.get(name) ?? 0) + 1);
  }

  return {
    open,
    save,

    create(name, settings) {
      const floor = Math.max(clock() * 1000, lastGiven.get(name) ?? 0);
      db.sql(CREATE).run(ns, name, JSON.stringify(settings), JSON.stringify(NO_TOTALS), floor);
      return open(name) as OpenPool;
    },

    change(name, work, otherwise) {
      const pool = open(name);
      if (pool === undefined) return otherwise();
      const result = work(pool);
      save(pool);
      return result;
    },

    look(name, work, otherwise) {
      const pool = open(name);
      return pool === undefined ? otherwise() : work(pool);
    },

    nextToken(pool) {
      pool.lastToken = tokenAfter(pool.name, pool.lastToken, pool.now);
      lastGiven.set(pool.name, pool.lastToken);
      return pool.lastToken;
    },

    tokenBound(name, pool) {
      const bound = tokenAfter(name, pool?.lastToken ?? 0, pool?.now ?? clock());
      lastGiven.set(name, bound - 1);
      if (pool !== undefined) pool.lastToken = bound - 1;
      return bound;
    },
  };
}

function columnsOf(pool: OpenPool): PoolColumns {
  const { settings, totals, lastToken, lastTurn, moved, id } = pool;
  return [JSON.stringify(settings), JSON.stringify(totals), lastToken, lastTurn, moved, id];
}
