/**
 * The part of a flight mark that tells which tasks each slot of a child runs: one record per slot id, written with one `pwrite` when a
 * run begins. So a supervisor knows them also when the child has ended without a word, or says nothing because its loop is blocked.
 *
 * A record: sequence number, start, timeout (doubles), number of tasks, length of the text (32 bits each), text. The text does not fit in
 * a record where many tasks run together: then it lies in the slot's part of a second area. Of ids that run elsewhere the file has holes.
 */
import { fstatSync, readSync, writeSync } from "node:fs";
import type { SlotTask } from "../protocol/host.ts";
import type { ClaimedTask } from "../protocol/task.ts";

/** Slots with higher ids leave no marks: when their process is lost, what they ran counts as claimed only. */
const SLOTS = 10_000;
const RECORDS_AT = 131_072;
const RECORD = 256;
const HEAD = 32;
const COUNT_AT = 24;
const LENGTH_AT = 28;
const TEXT = RECORD - HEAD;
const LISTS_AT = RECORDS_AT + SLOTS * RECORD;
/** Room for 1000 tasks with the longest ids, as JSON. */
const LIST = 1024 * 1024;

/** What a slot ran when its process was last seen. */
export interface TaskMark {
  slotId: number;
  /** Grows with every mark of the process. */
  seq: number;
  /** Machine-wide monotonic milliseconds. */
  startedAt: number;
  /** 0 for no limit. */
  timeoutMs: number;
  tasks: readonly MarkedTask[];
}

export type MarkedTask = Pick<ClaimedTask, "id" | "token" | "attempts">;

const bytes = Buffer.alloc(RECORD);

/** In a child: these tasks begin on this slot; with null, none runs there any more. */
export function writeTask(
  fd: number,
  seq: number,
  slotId: number,
  task: SlotTask | null,
  all: readonly ClaimedTask[],
): void {
  if (slotId >= SLOTS) return;
  const at = RECORDS_AT + slotId * RECORD;
  if (task === null) {
    bytes.writeUInt32LE(0, 0);
    writeSync(fd, bytes, 0, 4, at + COUNT_AT);
    return;
  }
  const text =
    task.count === 1
      ? `${task.token} ${task.attempts} ${task.id}`
      : JSON.stringify(all.map(({ id, token, attempts }) => [token, attempts, id]));
  bytes.writeDoubleLE(seq, 0);
  bytes.writeDoubleLE(task.startedAt, 8);
  bytes.writeDoubleLE(task.timeoutMs, 16);
  bytes.writeUInt32LE(task.count, COUNT_AT);
  // An upper bound, so that the usual short text is not measured.
  if (text.length * 3 <= TEXT || Buffer.byteLength(text) <= TEXT) {
    const length = bytes.write(text, HEAD);
    bytes.writeUInt32LE(length, LENGTH_AT);
    writeSync(fd, bytes, 0, HEAD + length, at);
    return;
  }
  const list = Buffer.from(text);
  bytes.writeUInt32LE(list.length, LENGTH_AT);
  writeSync(fd, list, 0, list.length, LISTS_AT + slotId * LIST);
  writeSync(fd, bytes, 0, HEAD, at);
}

/** What the slots of a child run, as far as it has noted. */
export function readTasks(fd: number): TaskMark[] {
  const size = Math.min(fstatSync(fd).size, LISTS_AT) - RECORDS_AT;
  if (size <= 0) return [];
  const records = Buffer.alloc(Math.ceil(size / RECORD) * RECORD);
  readSync(fd, records, 0, size, RECORDS_AT);
  const marks: TaskMark[] = [];
  for (let slotId = 0; slotId * RECORD < size; slotId++) {
    const record = records.subarray(slotId * RECORD, (slotId + 1) * RECORD);
    const count = record.readUInt32LE(COUNT_AT);
    if (count === 0) continue;
    marks.push({
      slotId,
      seq: record.readDoubleLE(0),
      startedAt: record.readDoubleLE(8),
      timeoutMs: record.readDoubleLE(16),
      tasks: tasksOf(count, textOf(fd, slotId, record)),
    });
  }
  return marks;
}

function textOf(fd: number, slotId: number, record: Buffer): string {
  const length = record.readUInt32LE(LENGTH_AT);
  if (length <= TEXT) return record.toString("utf8", HEAD, HEAD + length);
  const list = Buffer.alloc(length);
  return list.toString("utf8", 0, readSync(fd, list, 0, length, LISTS_AT + slotId * LIST));
}

function tasksOf(count: number, text: string): MarkedTask[] {
  try {
    const rows = count === 1 ? [split(text)] : (JSON.parse(text) as [string, number, string][]);
    return rows.map(([token, attempts, id]) => ({ id, token, attempts }));
  } catch {
    // The child ended in the middle of it: nothing had begun.
    return [];
  }
}

/** `token attempts id`; an id may have spaces of its own. */
function split(text: string): [string, number, string] {
  const [token = "", attempts = "0"] = text.split(" ", 2);
  return [token, Number(attempts), text.slice(token.length + attempts.length + 2)];
}
