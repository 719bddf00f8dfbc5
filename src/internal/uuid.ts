/**
 * UUIDv7 (RFC 9562 §5.7): 48 bits of Unix milliseconds, then random bits; sorts by creation time.
 * Ids made by one process within one millisecond also sort, by a counter in `rand_a` (RFC 9562 §6.2, method 1).
 * `now` is only a hint for sorting; nothing in Fleet decides by it.
 */
let lastMs = 0;
let counter = 0;
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

const POOL = new Uint8Array(8 * 256);
let used = POOL.length;

export function uuidv7(now: number = Date.now()): string {
  if (now > lastMs) {
    lastMs = now;
    counter = 0;
  } else if (++counter > 0xfff) {
    // 4096 ids within one millisecond: borrow from the next one, so the order stays strict.
    lastMs += 1;
    counter = 0;
  }
  if (used === POOL.length) {
    crypto.getRandomValues(POOL);
    used = 0;
  }
  const random = POOL.subarray(used, (used += 8));
  const time = lastMs.toString(16).padStart(12, "0");
  const tail = Array.from(random, (byte) => HEX[byte]).join("");
  const variant = (8 | ((random[0] as number) & 3)).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, "0")}-${variant}${tail.slice(1, 4)}-${tail.slice(4)}`;
}
