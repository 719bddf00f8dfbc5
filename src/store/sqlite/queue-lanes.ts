import type { Database } from "./database.ts";
import { UP_TO } from "./queue-tasks.ts";
import { fromColumn, toColumn } from "./stream-state.ts";

/** One key's tasks, or all those without a key, in one queue. */
export interface Lane {
  readonly name: string;
  waiting: number;
  active: number;
  /** Priority of its first waiting task; undefined where that has to be looked up. */
  head: number | undefined;
  /** Its place in the row; null while nothing of it could be claimed. */
  turn: number | null;
  stored: boolean;
  dirty: boolean;
}

/**
 * The lanes of one queue during one call: read when first needed, changed in memory, written back once.
 *
 * Those of which something could be claimed stand in a row, ordered by the priority of their first task, then by their turn. A
 * lane at its limit is not in the row, so nobody who claims ever looks at it.
 */
export interface Lanes {
  get(name: string): Lane;
  /** A task comes to wait. */
  join(name: string, priority: number): void;
  /** A waiting task goes. */
  leave(name: string, priority: number): void;
  /** A claim begins. */
  occupy(name: string): void;
  /** A claim ends. */
  release(name: string): void;
  /** One of its tasks was just claimed: what is left of it, which begins with priority `head`, goes to the end of the row. */
  served(lane: Lane, head: number | undefined): void;
  /** The first lanes of the row, as written back. */
  row(n: number): Lane[];
  /** The limit per key was changed. */
  relimit(): void;
  writeBack(): void;
}

type Columns = readonly [
  name: unknown,
  waiting: number,
  active: number,
  head: number | null,
  turn: number | null,
];

const SELECT = "SELECT lane, waiting, active, head, turn FROM queue_lanes WHERE queue_id = ?";
const GET = `${SELECT} AND lane = ?`;
const ROW = `${SELECT} AND turn IS NOT NULL ORDER BY head DESC, turn ${UP_TO}`;
const OCCUPIED = `${SELECT} AND active > 0`;
const HEAD = `SELECT priority FROM tasks WHERE queue_id = ? AND lane = ? AND state = 'waiting'
  ORDER BY priority DESC, seq LIMIT 1`;
const INSERT =
  "INSERT INTO queue_lanes (waiting, active, head, turn, queue_id, lane) VALUES (?, ?, ?, ?, ?, ?)";
const UPDATE =
  "UPDATE queue_lanes SET waiting = ?, active = ?, head = ?, turn = ? WHERE queue_id = ? AND lane = ?";
const DELETE = "DELETE FROM queue_lanes WHERE queue_id = ? AND lane = ?";

/** `queue.lastTurn` is the greatest place in the row that was given out. */
export function openLanes(
  db: Database,
  queue: { readonly id: number; lastTurn: number; settings: { keyConcurrency: number } },
): Lanes {
  const lanes = new Map<string, Lane>();

  function adopt([column, waiting, active, head, turn]: Columns): Lane {
    const name = fromColumn(column);
    const known = lanes.get(name);
    if (known !== undefined) return known;
    const lane = { name, waiting, active, head: head ?? undefined, turn, stored: true, dirty: false };
    lanes.set(name, lane);
    return lane;
  }

  function get(name: string): Lane {
    const known = lanes.get(name);
    if (known !== undefined) return known;
    const row = db.sql(GET).get<Columns>(queue.id, toColumn(name));
    if (row !== undefined) return adopt(row);
    const lane = { name, waiting: 0, active: 0, head: undefined, turn: null, stored: false, dirty: false };
    lanes.set(name, lane);
    return lane;
  }

  function place(lane: Lane): void {
    if (lane.waiting === 0 || roomOf(lane, queue.settings) === 0) lane.turn = null;
    else lane.turn ??= ++queue.lastTurn;
    lane.dirty = true;
  }

  function write(lane: Lane): void {
    lane.dirty = false;
    const key = toColumn(lane.name);
    if (lane.waiting === 0 && lane.active === 0) {
      if (lane.stored) db.sql(DELETE).run(queue.id, key);
      lanes.delete(lane.name);
      return;
    }
    if (lane.turn !== null) lane.head ??= db.sql(HEAD).get<[number]>(queue.id, key)?.[0];
    const head = lane.turn === null ? null : (lane.head ?? null);
    db.sql(lane.stored ? UPDATE : INSERT).run(lane.waiting, lane.active, head, lane.turn, queue.id, key);
    lane.stored = true;
  }

  function writeBack(): void {
    for (const lane of lanes.values()) if (lane.dirty) write(lane);
  }

  return {
    get,
    join(name, priority) {
      const lane = get(name);
      if (lane.waiting === 0) lane.head = priority;
      else if (lane.head !== undefined) lane.head = Math.max(lane.head, priority);
      lane.waiting++;
      place(lane);
    },
    leave(name, priority) {
      const lane = get(name);
      if (lane.head !== undefined && priority >= lane.head) lane.head = undefined;
      lane.waiting--;
      place(lane);
    },
    occupy(name) {
      const lane = get(name);
      lane.active++;
      place(lane);
    },
    release(name) {
      const lane = get(name);
      lane.active--;
      place(lane);
    },
    served(lane, head) {
      lane.head = head;
      lane.turn = null;
      place(lane);
    },
    row(n) {
      writeBack();
      return db.sql(ROW).all<Columns>(queue.id, n).map(adopt);
    },
    relimit() {
      writeBack();
      for (const row of db.sql(OCCUPIED).all<Columns>(queue.id)) place(adopt(row));
    },
    writeBack,
  };
}

/** How many more claims a lane may have at once. */
export function roomOf(
  lane: Pick<Lane, "name" | "active">,
  { keyConcurrency }: { keyConcurrency: number },
): number {
  if (lane.name === "" || keyConcurrency === 0) return Number.POSITIVE_INFINITY;
  return Math.max(0, keyConcurrency - lane.active);
}
