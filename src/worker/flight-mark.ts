import { closeSync, openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunMarks } from "../automation/slot-host.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { readTasks, type TaskMark, writeTask } from "./task-marks.ts";

/** Descriptor under which a child finds its mark. */
const MARK_FD = 4;
/** Where the slot stands, and how long it is. */
const SLOT_AT = 0;
const SLOT_BYTES = 4;
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
  /** What the slots of a batch automation run. */
  tasks: readonly TaskMark[];
}

export const NOTHING: Flight = { lastSlot: null, tasks: [] };

/**
 * A few bytes that a child and its supervisor share, in both directions, whatever the child is busy with:
 *
 * - Which slot ran last. The child writes it whenever another slot gets to run, so it is right even when the child was ended without a
 *   word: by `process.exit`, a native crash, a lack of memory, a blocked loop.
 * - What each slot of a batch automation runs (`task-marks.ts`).
 * - Until when the lease behind each of its runs surely holds. The supervisor writes it; a child that was busy or frozen for longer than
 *   a lease knows by it, before any message is heard, whether they may go on.
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
    return { lastSlot: last.slotId, tasks };
  }

  /** Until when (machine-wide monotonic milliseconds) the leases behind the child's runs surely hold, by slot id. */
  leases(until: Readonly<Record<number, number>>): void {
    if (!this.#open) return;
    const bytes = Buffer.alloc(LEASE_BYTES);
    for (const [slotId, time] of Object.entries(until)) {
      bytes.writeDoubleLE(time);
      try {
        writeSync(this.fd, bytes, 0, LEASE_BYTES, leaseAt(Number(slotId)));
      } catch {
        // No room: the child hears it by message all the same, only not as soon.
      }
    }
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
