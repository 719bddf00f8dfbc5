import { closeSync, openSync, readSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uuidv7 } from "../internal/uuid.ts";

/** Descriptor under which a child finds its mark. */
export const MARK_FD = 4;
export const MARK_BYTES = 4;
const NOBODY = 0xffff_ffff;

/**
 * Four bytes that a child and its supervisor share: which slot ran last. The child writes them whenever another slot gets to run, so
 * they are right even when it was ended without a word: by `process.exit`, a native crash, a lack of memory, a blocked loop.
 * The file has no name any more by the time the child starts; it goes with its descriptors.
 */
export class FlightMark {
  readonly fd: number;

  constructor() {
    const path = join(tmpdir(), `fleet-mark-${uuidv7()}`);
    this.fd = openSync(path, "wx+", 0o600);
    unlinkSync(path);
  }

  /** The slot that ran last, or null when none did yet. */
  read(): number | null {
    const bytes = Buffer.alloc(MARK_BYTES);
    if (readSync(this.fd, bytes, 0, MARK_BYTES, 0) < MARK_BYTES) return null;
    const slot = bytes.readUInt32LE(0);
    return slot === NOBODY ? null : slot;
  }

  close(): void {
    closeSync(this.fd);
  }
}
