/**
 * The hash slot of a key, as Redis Cluster computes it: CRC16 (XMODEM) of the key, or of what stands between the first `{` and
 * the next `}` where that is not empty, modulo 16384.
 */
export const SLOT_COUNT = 16_384;

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

export function keySlot(key: string): number {
  let crc = 0;
  for (const byte of Buffer.from(hashTag(key)))
    crc = ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] as number);
  return crc % SLOT_COUNT;
}

function hashTag(key: string): string {
  const open = key.indexOf("{");
  if (open < 0) return key;
  const close = key.indexOf("}", open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}
