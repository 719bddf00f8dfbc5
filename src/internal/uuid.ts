/**
 * UUIDv7 (RFC 9562 §5.7): 48 bits of Unix milliseconds, then random bits; sorts by creation time.
 * Ids made by one process within one millisecond also sort, by a counter in `rand_a` (RFC 9562 §6.2, method 1).
 * `now` is only a hint for sorting; nothing in Fleet decides by it.
 *
 * Every emit makes one, so texts come from tables and random bytes in bulk.
 */
let lastMs = 0;
let counter = 0;
/** `lastMs` as it stands in an id, with the version behind it. */
let prefix = "";
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

const RANDOM = new Uint8Array(8 * 512);
let used = RANDOM.length;

export function uuidv7(now: number = Date.now()): string {
  if (now > lastMs) startAt(now);
  // 4096 ids within one millisecond: borrow from the next one, so the order stays strict.
  else if (++counter > 0xfff) startAt(lastMs + 1);
  if (used === RANDOM.length) {
    crypto.getRandomValues(RANDOM);
    used = 0;
  }
  const variant = hex(((RANDOM[used++] as number) & 0x3f) | 0x80);
  const count = counter.toString(16).padStart(3, "0");
  return `${prefix}${count}-${variant}${random()}-${random()}${random()}${random()}${random()}${random()}${random()}`;
}

function startAt(ms: number): void {
  lastMs = ms;
  counter = 0;
  const time = ms.toString(16).padStart(12, "0");
  prefix = `${time.slice(0, 8)}-${time.slice(8)}-7`;
}

function random(): string {
  return hex(RANDOM[used++] as number);
}

function hex(byte: number): string {
  return HEX[byte] as string;
}
