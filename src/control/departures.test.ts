import { expect, test } from "vitest";
import { CONFIRM_MS, LATE_MS, Losses } from "./departures.ts";

const TTL = 10_000;
const worker = (id: string, lastSeenAt: number, incarnation = `${id}-1`) => ({
  id,
  incarnation,
  lastSeenAt,
  expiresAt: lastSeenAt + TTL,
});
const ids = (lost: readonly { id: string }[]) => lost.map(({ id }) => id);

test("a worker that is not heard of any more is lost, once, and not before it could have been heard of", () => {
  const losses = new Losses();
  const all = [worker("a", 0), worker("b", 9000)];
  expect(losses.see(all, TTL - 1, 100)).toEqual([]);
  expect(losses.due).toBe(Number.POSITIVE_INFINITY);
  expect(losses.see(all, TTL, 200)).toEqual([]);
  expect(losses.due).toBe(200 + CONFIRM_MS);
  expect(losses.see(all, TTL + 1, 199 + CONFIRM_MS)).toEqual([]);
  expect(ids(losses.see(all, TTL + 2, 200 + CONFIRM_MS))).toEqual(["a"]);
  expect(losses.see(all, TTL + 3, 999 + CONFIRM_MS)).toEqual([]);
  expect(losses.due).toBe(Number.POSITIVE_INFINITY);
  // Another process under that id, and one that was heard of again, can be lost anew.
  const next = [worker("a", 20_000, "a-2"), worker("b", 20_000)];
  expect(losses.see(next, 20_000, 50_000)).toEqual([]);
  expect(losses.see(next, 30_000, 60_000)).toEqual([]);
  expect(ids(losses.see(next, 30_000, 60_000 + CONFIRM_MS))).toEqual(["a", "b"]);
});

test("after an absence of the store those that are heard of in time are not lost", () => {
  const losses = new Losses();
  const [a, b] = [worker("a", 0), worker("b", 0)];
  expect(losses.see([a, b], 30_000, 0)).toEqual([]);
  expect(losses.see([{ ...a, expiresAt: 40_900 }, b], 30_900, 900)).toEqual([]);
  expect(ids(losses.see([{ ...a, expiresAt: 44_000 }, b], 34_000, 900 + CONFIRM_MS))).toEqual(["b"]);
});

test("neither is one that signed off, nor one that others have told of long ago", () => {
  const losses = new Losses();
  const left = { ...worker("left", 5000), expiresAt: 5000 };
  const all = [left, worker("long", 0), worker("late", 1000)];
  const now = TTL + LATE_MS + 1;
  for (const at of [0, CONFIRM_MS - 1]) expect(losses.see(all, now, at)).toEqual([]);
  expect(ids(losses.see(all, now + CONFIRM_MS, CONFIRM_MS))).toEqual(["late"]);
  expect(losses.see(all, now + 99_999, 99_999)).toEqual([]);
});

test("what did not reach anybody is answered again, later", () => {
  const losses = new Losses();
  const all = [worker("a", 0)];
  losses.see(all, TTL, 0);
  expect(ids(losses.see(all, TTL, CONFIRM_MS))).toEqual(["a"]);
  losses.untold(worker("a", 0), CONFIRM_MS);
  expect(losses.see(all, TTL, CONFIRM_MS + 1)).toEqual([]);
  expect(ids(losses.see(all, TTL, 2 * CONFIRM_MS))).toEqual(["a"]);
});
