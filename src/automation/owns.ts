/**
 * Which of `slots` slots owns `key`: true of exactly one. When the number grows from N to N+1, only 1/(N+1) of the keys move.
 *
 * Jump consistent hash (Lamping & Veach 2014, arXiv:1406.2294) over FNV-1a 64 of the key's UTF-16 units, with a
 * finishing mix so that keys that differ in their last letter spread too.
 */
export function ownerOf(key: string, slots: number): number {
  let state = mix(fnv1a(key));
  let bucket = -1n;
  let next = 0n;
  while (next < BigInt(slots)) {
    bucket = next;
    state = BigInt.asUintN(64, state * 2862933555777941757n + 1n);
    next = BigInt(Math.floor((Number(bucket) + 1) * (2 ** 31 / Number((state >> 33n) + 1n))));
  }
  return Number(bucket);
}

function fnv1a(key: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (let i = 0; i < key.length; i++) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(key.charCodeAt(i))) * 0x100000001b3n);
  }
  return hash;
}

function mix(value: bigint): bigint {
  const once = BigInt.asUintN(64, (value ^ (value >> 33n)) * 0xff51afd7ed558ccdn);
  return once ^ (once >> 33n);
}
