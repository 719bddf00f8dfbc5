import { expect, test } from "vitest";
import type { BusEvent } from "../protocol/event.ts";
import { WaitingEvents, type WaitingBounds } from "./waiting-events.ts";

const event = (seq: number, length = 1): BusEvent => ({
  topic: "t",
  source: "s",
  fleet: "f",
  seq,
  ts: 0,
  payload: "x".repeat(length),
});

function seqs(bounds: Partial<WaitingBounds>, events: readonly BusEvent[]): number[] {
  const waiting = new WaitingEvents({ buffer: 100, whenFull: "drop-oldest", ...bounds });
  for (const one of events) waiting.add(one);
  const left: number[] = [];
  for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) left.push(one.seq);
  return left;
}

test("the oldest go, or what comes, where there are too many", () => {
  const five = [1, 2, 3, 4, 5].map((seq) => event(seq));
  expect(seqs({ buffer: 2 }, five)).toEqual([4, 5]);
  expect(seqs({ buffer: 2, whenFull: "drop-newest" }, five)).toEqual([1, 2]);
});

test("the same where they are too large together", () => {
  const large = [1, 2, 3, 4, 5].map((seq) => event(seq, 1000));
  expect(seqs({ maxBytes: 5000 }, large)).toEqual([4, 5]);
  expect(seqs({ maxBytes: 5000, whenFull: "drop-newest" }, large)).toEqual([1, 2]);
  expect(seqs({}, large)).toEqual([1, 2, 3, 4, 5]);
});

test("one that is larger than the bound waits alone", () => {
  expect(seqs({ maxBytes: 500 }, [event(1), event(2, 10_000)])).toEqual([2]);
  expect(seqs({ maxBytes: 500 }, [event(1, 10_000), event(2)])).toEqual([2]);
});
