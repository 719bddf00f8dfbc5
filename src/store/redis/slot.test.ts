import { expect, it } from "vitest";
import { keySlot } from "./slot.ts";

// Reference values of `CLUSTER KEYSLOT`.
it.each([
  ["123456789", 12739],
  ["foo", 12182],
  ["{user1000}.following", 3443],
  ["{user1000}.followers", 3443],
  ["foo{}{bar}", 8363],
  ["foo{{bar}}zap", 4015],
  ["foo{bar}{zap}", 5061],
  ["", 0],
  ["ä", 13929],
])("key %j is in slot %i", (key, slot) => {
  expect(keySlot(key)).toBe(slot);
});
