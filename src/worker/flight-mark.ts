import { closeSync, openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uuidv7 } from "../internal/uuid.ts";

/** Descriptor under which a child finds its mark. */
const MARK_FD = 4;
/** Where the slot stands, and how long it is. */
const SLOT_AT = 0;
const SLOT_BYTES = 4;
const LEASE_AT = 8;
const LEASE_BYTES = 8;
const NOBODY = 0xffff_ffff;

/**
 * A few bytes that a child and its supervisor share, in both directions, whatever the child is busy with:
 *
 * - Which slot ran last. The child writes it whenever another slot gets to run, so it is right even when the child was ended without a
 *   word: by `process.exit`, a native crash, a lack of memory, a blocked loop.
 * - Until when its leases surely hold. The supervisor writes it; a child that was busy or frozen for longer than a lease knows by it,
 *   before any message is heard, whether it may go on.
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
    this.lease(0);
    const nobody = Buffer.alloc(SLOT_BYTES);
    nobody.writeUInt32LE(NOBODY);
    writeSync(this.fd, nobody, 0, SLOT_BYTES, SLOT_AT);
  }

  /** The slot that ran last, or null when none did yet. */
  read(): number | null {
    const bytes = Buffer.alloc(SLOT_BYTES);
    if (readSync(this.fd, bytes, 0, SLOT_BYTES, SLOT_AT) < SLOT_BYTES) return null;
    const slot = bytes.readUInt32LE(0);
    return slot === NOBODY ? null : slot;
  }

  /** Until when (machine-wide monotonic milliseconds) the leases of the child's slots surely hold. */
  lease(until: number): void {
    if (!this.#open) return;
    const bytes = Buffer.alloc(LEASE_BYTES);
    bytes.writeDoubleLE(until);
    writeSync(this.fd, bytes, 0, LEASE_BYTES, LEASE_AT);
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    closeSync(this.fd);
  }
}

const slotBytes = Buffer.alloc(SLOT_BYTES);

/** In a child: notes which slot runs. */
export function markSlot(slotId: number): void {
  slotBytes.writeUInt32LE(slotId);
  try {
    writeSync(MARK_FD, slotBytes, 0, SLOT_BYTES, SLOT_AT);
  } catch {
    // Only the cause of a crash would be less exact.
  }
}

/** In a child: until when its leases surely hold, as its supervisor knows it by now. */
export function markedLease(): number {
  const bytes = Buffer.alloc(LEASE_BYTES);
  try {
    return readSync(MARK_FD, bytes, 0, LEASE_BYTES, LEASE_AT) === LEASE_BYTES ? bytes.readDoubleLE(0) : 0;
  } catch {
    return 0;
  }
}
