/**
 * The part of a flight mark that tells a child until when the leases on items and locks that it wants to be kept surely hold: one record
 * per place, written by the supervisor with each renewal. So a child that was busy for longer than a hold knows at its next step, before
 * it has heard any message, whether it still holds them.
 *
 * A record: the lease's number, and the time (machine-wide monotonic milliseconds; 0: lost). A place is used again, a number is not: so
 * what is said of a lease is never taken for news of the one that has its place now.
 */
import { readSync, writeSync } from "node:fs";

/** Behind the times of the slots, before what they run (`task-marks.ts`). */
const KEPT_AT = 81_920;
const RECORD = 16;
/** Leases beyond so many at once leave no marks: they are known by message only. */
const PLACES = 3072;

/** In a supervisor. */
export function writeKept(fd: number, place: number, number: number, until: number): void {
  if (place >= PLACES) return;
  const bytes = Buffer.alloc(RECORD);
  bytes.writeDoubleLE(number, 0);
  bytes.writeDoubleLE(until, 8);
  try {
    writeSync(fd, bytes, 0, RECORD, KEPT_AT + place * RECORD);
  } catch {
    // No room: the child hears it by message all the same, only not as soon.
  }
}

/** In a child; 0 where nothing is known of this lease. */
export function readKept(fd: number, place: number, number: number): number {
  if (place >= PLACES) return 0;
  const bytes = Buffer.alloc(RECORD);
  try {
    const read = readSync(fd, bytes, 0, RECORD, KEPT_AT + place * RECORD);
    return read === RECORD && bytes.readDoubleLE(0) === number ? bytes.readDoubleLE(8) : 0;
  } catch {
    return 0;
  }
}
