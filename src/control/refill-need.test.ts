import { describe, expect, it } from "vitest";
import { missingPlaces, type RefillState, refillPauseMs } from "./refill-need.ts";

const state = (given: Partial<RefillState>): RefillState => ({
  count: 0,
  below: 3,
  outstanding: new Set<number>(),
  failures: 0,
  failedAt: 0,
  ...given,
});

describe("missingPlaces", () => {
  it.each<[string, Partial<RefillState>, number[]]>([
    ["one per item that is missing", {}, [0, 1, 2]],
    ["less what is there", { count: 1 }, [0, 1]],
    ["less what is under way", { outstanding: new Set([0, 1]) }, [2]],
    ["on places that are free", { count: 1, outstanding: new Set([0]) }, [1]],
    ["nothing when there is enough", { count: 3 }, []],
    ["nothing when there will be enough", { count: 1, outstanding: new Set([0, 2]) }, []],
    ["nothing when there is more than enough", { count: 7, outstanding: new Set([1]) }, []],
  ])("%s", (_, given, places) => {
    expect(missingPlaces(state(given), 0)).toEqual(places);
  });

  it("never has more than `below` under way, whatever the order of events", () => {
    for (let count = 0; count <= 4; count++) {
      for (let bits = 0; bits < 8; bits++) {
        const outstanding = new Set([0, 1, 2].filter((place) => (bits & (1 << place)) !== 0));
        const places = missingPlaces(state({ count, outstanding }), 0);
        expect(places.length).toBe(Math.max(0, 3 - count - outstanding.size));
        expect(places.every((place) => place < 3 && !outstanding.has(place))).toBe(true);
      }
    }
  });

  it("waits after failures, longer each time, and then tries one alone", () => {
    const failed = state({ failures: 2, failedAt: 10_000 });
    expect(missingPlaces(failed, 11_999)).toEqual([]);
    expect(missingPlaces(failed, 12_000)).toEqual([0]);
    expect(missingPlaces({ ...failed, outstanding: new Set([0]) }, 20_000)).toEqual([]);
    expect([1, 2, 3, 9, 10, 1000].map(refillPauseMs)).toEqual([1000, 2000, 4000, 256_000, 300_000, 300_000]);
  });
});
