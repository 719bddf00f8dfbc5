import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ownerOf } from "./owns.ts";

const keys = Array.from({ length: 10_000 }, (_, i) => `https://example.com/page/${i}`);

describe("ownerOf", () => {
  it("names exactly one of the slots, always the same", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.integer({ min: 1, max: 10_000 }), (key, slots) => {
        const owner = ownerOf(key, slots);
        expect(Number.isInteger(owner) && owner >= 0 && owner < slots).toBe(true);
        expect(ownerOf(key, slots)).toBe(owner);
      }),
    );
  });

  it.each([2, 3, 7, 16])("shares keys out evenly among %d slots", (slots) => {
    const counts = Array.from({ length: slots }, () => 0);
    for (const key of keys) counts[ownerOf(key, slots)]! += 1;
    const fair = keys.length / slots;
    for (const count of counts) expect(Math.abs(count - fair)).toBeLessThan(5 * Math.sqrt(fair));
  });

  it("spreads keys that differ in their last letter only", () => {
    const owners = new Set(
      Array.from("abcdefghijklmnopqrstuvwxyz").map((letter) => ownerOf(`site-${letter}`, 4)),
    );
    expect(owners.size).toBe(4);
  });

  it.each([1, 2, 5, 10])(
    "moves only the new slot's share of the keys when %d slots become one more",
    (slots) => {
      const moved = keys.filter((key) => ownerOf(key, slots) !== ownerOf(key, slots + 1));
      for (const key of moved) expect(ownerOf(key, slots + 1)).toBe(slots);
      const share = keys.length / (slots + 1);
      expect(Math.abs(moved.length - share)).toBeLessThan(5 * Math.sqrt(share));
    },
  );

  it("stays the same from version to version: slots of different versions share one fleet", () => {
    expect(keys.slice(0, 8).map((key) => ownerOf(key, 5))).toMatchInlineSnapshot(`
      [
        0,
        4,
        1,
        1,
        3,
        1,
        2,
        2,
      ]
    `);
  });
});
