import { expect, test } from "vitest";
import { firstAlive, streamTime, type StreamRow } from "./stream-state.ts";

function row(changes: Partial<StreamRow>): StreamRow {
  const bounds = { maxLength: 100, ttlMs: 1000, maxPayloadBytes: 100 };
  const counters = { pushed: 0, popped: 0, trimmed: 0, expired: 0, invalid: 0 };
  return { id: 1, bounds, head: 1, next: 1, lastAt: 0, skew: 0, ...counters, ...changes };
}

test("a stream's time follows the clock and never goes back", () => {
  expect(streamTime(row({ lastAt: 5000 }), 6000)).toEqual({ at: 6000, skew: 0 });
  expect(streamTime(row({ lastAt: 5000 }), 4000)).toEqual({ at: 5000, skew: 0 });
});

test("after a long way back it goes on from where it was, at the clock's pace", () => {
  const back = streamTime(row({ lastAt: 10_000_000 }), 1000);
  expect(back).toEqual({ at: 10_000_000, skew: 9_999_000 });
  expect(streamTime(row({ lastAt: 10_000_000, skew: back.skew }), 1500)).toEqual({
    at: 10_000_500,
    skew: 9_999_000,
  });
});

test.each([
  [[], 0, 1],
  [[10, 20, 30], 1000, 1],
  [[10, 20, 30], 1010, 2],
  [[10, 20, 30], 1029, 3],
  [[10, 20, 30], 1030, 4],
  [[10, 10, 10, 10, 20, 20], 1015, 5],
])("of entries pushed at %j, at %i the first alive is %i", (ats, now, first) => {
  const stream = row({ next: 1 + ats.length, lastAt: ats.at(-1) ?? 0 });
  expect(firstAlive(stream, now, (seq) => ats[seq - 1] ?? Number.NaN)).toBe(first);
});

test("finding the border among very many entries looks at few of them", () => {
  let looks = 0;
  const stream = row({ next: 1_000_001, lastAt: 1_000_000 });
  const first = firstAlive(stream, 501_000, (seq) => {
    looks++;
    return seq;
  });
  expect(first).toBe(500_001);
  expect(looks).toBeLessThan(25);
});
