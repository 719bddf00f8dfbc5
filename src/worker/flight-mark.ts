import { closeSync, openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunMarks } from "../automation/slot-host.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { ToHost } from "../protocol/host.ts";
import { readKept, writeKept } from "./lease-marks.ts";
import { readTasks, type TaskMark, writeTask } from "./task-marks.ts";

/** Descriptor under which a child finds its mark. */
const MARK_FD = 4;
/** Where the slot stands, and how long it is. */
const SLOT_AT = 0;
const SLOT_BYTES = 4;
/** Not 0: that slot's code ended the process, as its exit hook has said. */
const ENDED_AT = 4;
const SEQ_AT = 8;
const HEAD_BYTES = 16;
/** From here on: one time for each slot id. Of ids that run elsewhere the file has holes, which take no room. */
const LEASES_AT = HEAD_BYTES;
const LEASE_BYTES = 8;
const NOBODY = 0xffff_ffff;

/** What a supervisor sees of a child whatever that is busy with, and after its end. */
export interface Flight {
  /** The slot whose code ran last, where that is known. */
  lastSlot: number | null;
  /** The slot whose code ended the process (`process.exit`): known for sure, unlike the last one after a native crash. */
  endedBy: number | null;
  /** What the slots of a batch automation run. */
  tasks: readonly TaskMark[];
}

export const NOTHING: Flight = { lastSlot: null, endedBy: null, tasks: [] };

/**
 * A few bytes that a child and its supervisor share, in both directions, whatever the child is busy with:
 *
 * - Which slot ran last. The child writes it whenever a slot begins something or says that it gets on. Code goes on after an `await`
 *   without a word, so after a native crash, a lack of memory or a blocked loop this is a guess: good enough for endless loops, which say
 *   so all the time, and never used for tasks. Only the exit hook, which `process.exit` runs, is sure whose code it was.
 * - What each slot of a batch automation runs (`task-marks.ts`).
 * - Until when the lease behind each of its runs surely holds. The supervisor writes it; a child that was busy or frozen for longer than
 *   a lease knows by it, before any message is heard, whether they may go on.
 * - The same for the leases on items and locks that it wants to be kept (`lease-marks.ts`).
 *
 * The file has no name any more by the time the child starts; it goes with its descriptors.
 */
export class FlightMark {
  readonly fd: number;
  #open = true;

  constructor() {
    const path = join(tmpdir(), `fleet-mark-${uuidv7()}`);
    this.fd = openSync(path, "wx+", 0o600);
    unlinkSync(path);
    const nobody = Buffer.alloc(SLOT_BYTES);
    nobody.writeUInt32LE(NOBODY);
    writeSync(this.fd, nobody, 0, SLOT_BYTES, SLOT_AT);
  }

  /** The slot that ran last, or null when none did yet, and what each slot runs. */
  read(): Flight {
    if (!this.#open) return NOTHING;
    const bytes = Buffer.alloc(HEAD_BYTES);
    const read = readSync(this.fd, bytes, 0, HEAD_BYTES, SLOT_AT);
    const slot = read < SLOT_BYTES ? NOBODY : bytes.readUInt32LE(0);
    const tasks = readTasks(this.fd);
    let last = {
      slotId: slot === NOBODY ? null : slot,
      seq: read < HEAD_BYTES ? 0 : bytes.readDoubleLE(SEQ_AT),
    };
    // To begin a task is to run, too.
    for (const { slotId, seq } of tasks) if (seq > last.seq) last = { slotId, seq };
    const endedBy = read === HEAD_BYTES && bytes.readUInt32LE(ENDED_AT) !== 0 ? slot : null;
    return { lastSlot: last.slotId, endedBy, tasks };
  }

  /**
   * Until when (machine-wide monotonic milliseconds) the leases behind the child's runs surely hold, by slot id. False where there was no
   * room: then the child must hear it by message.
   */
  leases(until: Readonly<Record<number, number>>): boolean {
    if (!this.#open) return false;
    // Slots side by side go in one write.
    const ids = Object.keys(until).map(Number);
    for (let from = 0, to = 0; from < ids.length; from = to) {
      const first = ids[from] as number;
      while (to < ids.length && ids[to] === first + to - from) to += 1;
      const bytes = Buffer.alloc((to - from) * LEASE_BYTES);
      for (let at = from; at < to; at++)
        bytes.writeDoubleLE(until[ids[at] as number] as number, (at - from) * LEASE_BYTES);
      try {
        writeSync(this.fd, bytes, 0, bytes.length, leaseAt(first));
      } catch {
        return false;
      }
    }
    return true;
  }

  /** Until when the leases that the child wants to be kept surely hold. */
  kept(leases: Extract<ToHost, { type: "kept" }>["leases"]): void {
    if (!this.#open) return;
    for (const { place, number, until } of leases) writeKept(this.fd, place, number, until ?? 0);
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    closeSync(this.fd);
  }
}

function leaseAt(slotId: number): number {
  return LEASES_AT + slotId * LEASE_BYTES;
}

const head = Buffer.alloc(HEAD_BYTES);
let seq = 0;

/** In a child: what its slots run. Only the cause of a crash is less exact where there is no room for it. */
export const flightMarks: RunMarks = {
  slot(slotId) {
    head.writeUInt32LE(slotId, 0);
    head.writeDoubleLE(++seq, SEQ_AT);
    try {
      writeSync(MARK_FD, head, 0, HEAD_BYTES, SLOT_AT);
    } catch {
      // As said.
    }
  },
  task(slotId, task, all) {
    seq += 1;
    try {
      writeTask(MARK_FD, seq, slotId, task, all);
    } catch {
      // As said.
    }
  },
};

/** In a child that ends by `process.exit`: the code of this slot has called it. */
export function markExit(slotId: number): void {
  head.writeUInt32LE(1, ENDED_AT);
  flightMarks.slot(slotId);
}

/** In a child: until when this lease on an item or lock surely holds, as its supervisor knows it by now; 0 where nothing is known. */
export function markedKept(place: number, number: number): number {
  return readKept(MARK_FD, place, number);
}

/** In a child: until when the lease behind this slot's run surely holds, as its supervisor knows it by now. */
export function markedLease(slotId: number, fd = MARK_FD): number {
  const bytes = Buffer.alloc(LEASE_BYTES);
  try {
    const read = readSync(fd, bytes, 0, LEASE_BYTES, leaseAt(slotId));
    return read === LEASE_BYTES ? bytes.readDoubleLE(0) : 0;
  } catch {
    return 0;
  }
}
