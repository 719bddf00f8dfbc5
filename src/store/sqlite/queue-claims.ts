import type { ClaimedTask } from "../../protocol/task.ts";
import type { Database } from "./database.ts";
import { type OpenQueue, type QueueBook, roomInQueue } from "./queue-book.ts";
import { type Lane, roomOf } from "./queue-lanes.ts";
import { change } from "./queue-moves.ts";
import { keyOf, payloadOf, selectTasks, type Task, tasksWhere, UP_TO } from "./queue-tasks.ts";
import { toColumn } from "./stream-state.ts";

const NEXT = tasksWhere(`t.lane = ? AND t.state = 'waiting' ORDER BY t.priority DESC, t.seq ${UP_TO}`);

/** Who claims, and for how long. */
export interface Claimant {
  holder: string;
  worker: string;
  leaseMs: number;
}

/**
 * Claims up to `n` waiting tasks, none of which may be past its time to live. Serves the row of lanes from its front: each lane
 * gives one task and goes to the end, or leaves. The first `n` lanes are all that `n` claims can reach.
 */
export function claimTasks(
  parts: { db: Database; book: QueueBook },
  queue: OpenQueue,
  claimant: Claimant,
  n: number,
): ClaimedTask[] {
  const { db, book } = parts;
  const most = Math.min(n, roomInQueue(queue));
  if (most <= 0) return [];
  const row = queue.lanes.row(most);
  const next = createLookAhead(db, queue, row.length, most);
  const claimed: ClaimedTask[] = [];
  while (claimed.length < most) {
    const lane = row.shift();
    const task = lane === undefined ? undefined : next.take(lane);
    if (lane === undefined || task === undefined) break;
    const token = book.nextToken(queue);
    change(db, queue, task, {
      state: "active",
      token,
      holder: claimant.holder,
      worker: claimant.worker,
      leaseUntil: queue.now + claimant.leaseMs,
      startedAt: queue.now,
    });
    const more = lane.waiting > 0 && roomOf(lane, queue.settings) > 0;
    queue.lanes.served(lane, more ? next.priority(lane) : undefined);
    if (more) enterRow(row, lane);
    claimed.push(toClaimed(db, task, token));
  }
  return claimed;
}

/** Reads the next tasks of each lane some at a time: as many as it is likely to be asked for. */
function createLookAhead(db: Database, queue: OpenQueue, lanes: number, most: number) {
  const read = new Map<Lane, Task[]>();
  function look(lane: Lane): Task[] {
    let tasks = read.get(lane);
    if (tasks === undefined || tasks.length === 0) {
      // One more than it is likely to give: the next one's priority is its place in the row.
      const likely = Math.min(Math.ceil(most / lanes) + 1, roomOf(lane, queue.settings));
      tasks = selectTasks(db, NEXT, queue.id, toColumn(lane.name), likely);
      read.set(lane, tasks);
    }
    return tasks;
  }
  return {
    take: (lane: Lane) => look(lane).shift(),
    priority: (lane: Lane) => look(lane)[0]?.priority,
  };
}

/** Puts a lane where it belongs: behind those of its priority that had their turn before. */
function enterRow(row: Lane[], lane: Lane): void {
  let at = row.length;
  while (at > 0 && (row[at - 1]?.head ?? 0) < (lane.head ?? 0)) at--;
  row.splice(at, 0, lane);
}

function toClaimed(db: Database, task: Task, token: number): ClaimedTask {
  const { id, attempts, crashes, interruptions, maxAttempts, timeoutMs, lane, submittedAt, tick } = task;
  return {
    id,
    payload: payloadOf(db, task.seq),
    token: String(token),
    attempts,
    crashes,
    interruptions,
    maxAttempts,
    timeoutMs,
    key: keyOf(lane),
    submittedAt,
    tick,
  };
}
