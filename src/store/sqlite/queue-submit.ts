import type { NewTask } from "../../protocol/task.ts";
import type { SubmitOutcome, SubmitResult } from "../queue-store.ts";
import type { Database } from "./database.ts";
import { lengthOf, type OpenQueue, type QueueBook } from "./queue-book.ts";
import { change, enter, stateUntil } from "./queue-moves.ts";
import { AT_ONCE, tidy, tidyTask } from "./queue-sweep.ts";
import { laneOf, readTask, selectTasks, type Task, tasksWhere } from "./queue-tasks.ts";
import { fromColumn, toColumn } from "./stream-state.ts";

const INSERT = `INSERT INTO tasks (queue_id, id, state, lane, priority, max_attempts, timeout_ms, ttl_ms,
  submitted_at, due_at, expires_at, asked, dedupe_key, bears_key, schedule,
  tick_at, print) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (queue_id, id) DO NOTHING`;
const INSERT_PAYLOAD = "INSERT INTO task_payloads (seq, payload) VALUES (last_insert_rowid(), ?)";
const WRITE_PAYLOAD = "UPDATE task_payloads SET payload = ? WHERE seq = ?";
const BEARER = tasksWhere("t.dedupe_key = ? AND t.bears_key = 1");
const WINDOW = "SELECT task_id FROM queue_throttles WHERE queue_id = ? AND dedupe_key = ? AND until > ?";
const OPEN_WINDOW = `INSERT OR REPLACE INTO queue_throttles (queue_id, dedupe_key, task_id, until)
  VALUES (?, ?, ?, ?)`;
const SUBMITTED = `SELECT submitted, iif(spec IS NULL, NULL, revision) FROM queue_schedules
  WHERE ns = ? AND queue = ? AND id = ?`;
// A tick of a schedule that is not there counts as one of a schedule that was removed.
const NOTE_TICK = `INSERT INTO queue_schedules (ns, queue, id, submitted, removed_at) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (ns, queue, id) DO UPDATE SET submitted = excluded.submitted,
  removed_at = iif(spec IS NULL, excluded.removed_at, NULL)`;

interface Parts {
  db: Database;
  ns: string;
  book: QueueBook;
}

/** Submits lists, each as a whole or not at all. Undefined where the queue was never declared. */
export function submitLists(
  { db, ns, book }: Parts,
  name: string,
  lists: readonly (readonly NewTask[])[],
): SubmitResult[] | undefined {
  let queue = book.open(name);
  if (queue === undefined) return undefined;
  const results: SubmitResult[] = [];
  for (const list of lists) {
    const { maxLength } = queue.settings;
    if (maxLength > 0) makeRoom(db, queue, maxLength - list.length);
    const length = lengthOf(queue);
    if (maxLength === 0 || length + list.length <= maxLength) {
      results.push(submitList({ db, ns }, queue, list));
      continue;
    }
    // Only when it is written can be said what a list of repeats and duplicates adds.
    book.save(queue);
    db.sql("SAVEPOINT list").run();
    const result = submitList({ db, ns }, queue, list);
    if (lengthOf(queue) <= Math.max(maxLength, length)) {
      results.push(result);
    } else {
      db.sql("ROLLBACK TO list").run();
      queue = book.open(name) as OpenQueue;
      queue.totals.refused += list.length;
      results.push({ outcome: "full", length, maxLength });
    }
    db.sql("RELEASE list").run();
  }
  book.save(queue);
  return results;
}

/** Ends what is past its time to live, as long as that and the queue's length stand in the way. */
function makeRoom(db: Database, queue: OpenQueue, length: number): void {
  while (lengthOf(queue) > length && tidy(db, queue).expired === AT_ONCE);
}

function submitList(parts: Omit<Parts, "book">, queue: OpenQueue, list: readonly NewTask[]): SubmitResult {
  const { db } = parts;
  const tasks = list.map((task): { id: string; outcome: SubmitOutcome } => {
    const simple = task.tick === undefined && task.dedupe === undefined;
    const other = simple ? undefined : standIn(parts, queue, task);
    if (other !== undefined) return other;
    if (!insert(db, queue, task)) return repeated(db, queue, task);
    if (task.tick !== undefined) noteTick(parts, queue, task.tick);
    return { id: task.id, outcome: "submitted" };
  });
  return { outcome: "accepted", tasks };
}

/** What the submission comes to if it adds no task. */
function standIn(
  parts: Omit<Parts, "book">,
  queue: OpenQueue,
  task: NewTask,
): { id: string; outcome: SubmitOutcome } | undefined {
  const { db, ns } = parts;
  const { tick, dedupe } = task;
  if (readTask(db, queue.id, task.id) !== undefined) return repeated(db, queue, task);
  if (tick !== undefined) {
    const [last = null, revision] =
      db.sql(SUBMITTED).get<[number | null, number | null]>(ns, queue.name, tick.schedule) ?? [];
    if (last !== null && tick.at <= last) return { id: task.id, outcome: "fired" };
    if (tick.revision !== undefined && tick.revision !== revision)
      return { id: task.id, outcome: "outdated" };
  }
  if (dedupe === undefined) return undefined;
  const bearer = liveBearer(db, queue, dedupe.key);
  switch (dedupe.onDuplicate) {
    case "throttle": {
      const window = db.sql(WINDOW).get<[unknown]>(queue.id, toColumn(dedupe.key), queue.now);
      if (bearer === undefined && window !== undefined)
        return ignored(db, queue, fromColumn(window[0]), task);
      if (bearer !== undefined) return ignored(db, queue, bearer.id, task);
      const until = queue.now + dedupe.windowMs;
      db.sql(OPEN_WINDOW).run(queue.id, toColumn(dedupe.key), toColumn(task.id), until);
      return undefined;
    }
    case "ignore":
      return bearer === undefined ? undefined : ignored(db, queue, bearer.id, task);
    case "replace":
    case "debounce":
      if (bearer === undefined) return undefined;
      if (bearer.state === "active") break;
      replace(db, queue, bearer, task);
      if (tick !== undefined) noteTick(parts, queue, tick);
      return { id: bearer.id, outcome: "replaced" };
    case "supersede":
      if (bearer === undefined) return undefined;
      if (bearer.state !== "active") change(db, queue, bearer, { state: "cancelled" });
      else change(db, queue, bearer, { cancelling: true });
  }
  if (bearer.bearsKey) change(db, queue, bearer, { bearsKey: false });
  return undefined;
}

/** The unfinished task to which a key belongs. */
export function bearerOf(db: Database, queue: OpenQueue, dedupeKey: string): Task | undefined {
  return selectTasks(db, BEARER, queue.id, toColumn(dedupeKey))[0];
}

/** The same, once it is what it has become by now: what time has ended bears no key. */
function liveBearer(db: Database, queue: OpenQueue, dedupeKey: string): Task | undefined {
  const bearer = bearerOf(db, queue, dedupeKey);
  if (bearer !== undefined) tidyTask(db, queue, bearer);
  return bearer?.bearsKey === true ? bearer : undefined;
}

/** False where the id is known. */
function insert(db: Database, queue: OpenQueue, task: NewTask): boolean {
  const { lane, priority, dueAt, state, expiresAt } = terms(task, queue.now);
  const { changes } = db
    .sql(INSERT)
    .run(
      queue.id,
      toColumn(task.id),
      state,
      toColumn(lane),
      priority,
      task.maxAttempts,
      task.timeoutMs,
      task.ttlMs,
      queue.now,
      dueAt,
      expiresAt,
      task.asked === true ? 1 : 0,
      task.dedupe === undefined ? null : toColumn(task.dedupe.key),
      task.dedupe === undefined ? 0 : 1,
      task.tick?.schedule ?? null,
      task.tick?.at ?? null,
      task.print ?? null,
    );
  if (changes === 0) return false;
  db.sql(INSERT_PAYLOAD).run(toColumn(task.payload));
  enter(queue, { state, lane, priority });
  queue.totals.submitted++;
  return true;
}

/** Gives a task another's payload and options; it keeps its id, its place and those who wait for it. */
function replace(db: Database, queue: OpenQueue, bearer: Task, task: NewTask): void {
  const { maxAttempts, timeoutMs, ttlMs } = task;
  const counters = { attempts: 0, crashes: 0, interruptions: 0 };
  change(db, queue, bearer, { ...terms(task, queue.now), ...counters, maxAttempts, timeoutMs, ttlMs });
  db.sql(WRITE_PAYLOAD).run(toColumn(task.payload), bearer.seq);
  if (task.asked === true) ask(db, bearer);
  queue.totals.duplicates++;
}

/** Where and when a submitted task waits. */
function terms(task: NewTask, now: number) {
  const { dedupe, runAt, delayMs, ttlMs, priority } = task;
  const delayed = dedupe?.onDuplicate === "debounce" ? now + dedupe.windowMs : (runAt ?? now + delayMs);
  const dueAt = Math.max(now, Math.ceil(delayed));
  const expiresAt = ttlMs === 0 ? null : dueAt + Math.ceil(ttlMs);
  return { lane: laneOf(task.key), priority, dueAt, state: stateUntil(dueAt, now), expiresAt };
}

function repeated(db: Database, queue: OpenQueue, task: NewTask): { id: string; outcome: SubmitOutcome } {
  if (task.asked === true) ask(db, readTask(db, queue.id, task.id));
  return { id: task.id, outcome: "repeated" };
}

function ignored(
  db: Database,
  queue: OpenQueue,
  id: string,
  task: NewTask,
): { id: string; outcome: SubmitOutcome } {
  if (task.asked === true) ask(db, readTask(db, queue.id, id));
  queue.totals.duplicates++;
  return { id, outcome: "ignored" };
}

function noteTick(
  { db, ns }: Omit<Parts, "book">,
  queue: OpenQueue,
  tick: NonNullable<NewTask["tick"]>,
): void {
  db.sql(NOTE_TICK).run(ns, queue.name, tick.schedule, tick.at, queue.now);
}

const ASK = "UPDATE tasks SET asked = 1 WHERE seq = ? AND finished_at IS NULL";

/** Marks an unfinished task: somebody waits for its end. */
export function ask(db: Database, task: Task | undefined): void {
  if (task !== undefined) db.sql(ASK).run(task.seq);
}
