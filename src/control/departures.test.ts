import { expect, test } from "vitest";
import { SILENT } from "../internal/log.ts";
import { worker as info } from "../store/conformance/workers.ts";
import type { EventStore } from "../store/store.ts";
import { CONFIRM_MS, Departures, LATE_MS, Losses } from "./departures.ts";

const TTL = 10_000;
const worker = (id: string, lastSeenAt: number, incarnation = `${id}-1`) => ({
  id,
  incarnation,
  draining: false,
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

test("one that was heard of at the last look is lost, however long the store was away since", () => {
  const losses = new Losses();
  const all = [worker("a", 0), worker("b", 0)];
  const now = TTL + 2 * LATE_MS;
  expect(losses.see(all, 5000, 0)).toEqual([]);
  expect(losses.see(all, now, 2 * LATE_MS)).toEqual([]);
  const back = [worker("a", 0), worker("b", now + 1000)];
  expect(ids(losses.see(back, now + CONFIRM_MS, 2 * LATE_MS + CONFIRM_MS))).toEqual(["a"]);
});

test("what was seen before others led is forgotten", () => {
  const losses = new Losses();
  const all = [worker("live", 0), worker("expired", -TTL)];
  expect(losses.see(all, 0, 0)).toEqual([]);
  losses.forget();
  expect(losses.due).toBe(Number.POSITIVE_INFINITY);
  for (const at of [0, CONFIRM_MS, 2 * CONFIRM_MS])
    expect(losses.see(all, 30 * LATE_MS + at, 30 * LATE_MS + at)).toEqual([]);
});

test("one that signed off by an older version, later than it was last seen, is not lost; one that was killed as it drained is", () => {
  const losses = new Losses();
  const killed = { ...worker("killed", 5000), draining: true };
  const left = { ...worker("left", 5000), draining: true };
  expect(losses.see([killed, left], 5000, 0)).toEqual([]);
  const all = [
    killed,
    { ...left, expiresAt: 5900 },
    { ...worker("unseen", 5000), draining: true, expiresAt: 5900 },
  ];
  expect(losses.see(all, 5000 + TTL, TTL)).toEqual([]);
  expect(ids(losses.see(all, 5000 + TTL, TTL + CONFIRM_MS))).toEqual(["killed"]);
});

/** Tells of what it sees to a store that takes no event until `works`. */
function setUp() {
  const said: string[] = [];
  const warn = (message: string) => void said.push(message);
  const sent = { tries: 0, told: 0, works: false };
  const publishMany: EventStore["publishMany"] = ({ events }) => {
    sent.tries += 1;
    if (!sent.works) return Promise.reject(new Error("no room"));
    sent.told += events.length;
    return Promise.resolve(events.map(() => ({ seq: 1, ts: 0 })));
  };
  const store = { events: { publishMany } as EventStore };
  const departures = new Departures({ store, source: "a", log: { ...SILENT, warn } });
  const record = (lastSeenAt: number) => ({
    ...info("w"),
    ...worker("w", lastSeenAt),
    generation: 1,
    slots: [],
  });
  const tell = async (at: number) => {
    departures.tell(at);
    await new Promise((resolve) => setImmediate(resolve));
  };
  departures.see({ workers: [record(0)], now: TTL }, 0);
  departures.see({ workers: [record(0)], now: TTL + CONFIRM_MS }, CONFIRM_MS);
  return { departures, said, sent, tell, record };
}

test("what cannot be published is tried again with growing pauses, for a minute; it is logged once, and nothing is looked at for it", async () => {
  const { departures, said, sent, tell } = setUp();
  for (let at = CONFIRM_MS; at < CONFIRM_MS + LATE_MS; at += 100) {
    await tell(at);
    expect(departures.due).toBe(Number.POSITIVE_INFINITY);
  }
  expect(said).toEqual(["worker w is lost: it was last heard of 13 s ago"]);
  // After 0, 1, 3, 7, 15 s, and then each 15 s.
  expect(sent.tries).toBe(7);
  for (const late of [0, 20_000, 40_000]) await tell(CONFIRM_MS + LATE_MS + late);
  expect(sent).toMatchObject({ tries: 7, told: 0 });
  expect(said.slice(1)).toEqual(["fleet.worker.offline of worker w could not be published"]);
});

test("what was not published is, once it can be; not of one that was heard of again, nor once others have led", async () => {
  const { sent, tell } = setUp();
  await tell(CONFIRM_MS);
  sent.works = true;
  for (const later of [1000, 2000, 90_000]) await tell(CONFIRM_MS + later);
  expect(sent).toMatchObject({ tries: 2, told: 1 });
  for (const end of ["heard of", "others"]) {
    const { departures, said, sent, tell, record } = setUp();
    await tell(CONFIRM_MS);
    if (end === "others") departures.forget();
    else departures.see({ workers: [record(TTL)], now: TTL }, CONFIRM_MS + 1);
    sent.works = true;
    for (const later of [5000, 90_000]) await tell(CONFIRM_MS + later);
    expect(sent).toMatchObject({ tries: 1, told: 0 });
    expect(said).toHaveLength(1);
  }
});
