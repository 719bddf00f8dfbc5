import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Assignments } from "../protocol/spec.ts";
import { place, whyUnplaced, type PlaceableWorker, type PlaceInput } from "./place.ts";

const NOW = 1_000;
const NAMES = ["a", "b", "c"];

function worker(id: string, change: Partial<PlaceableWorker> = {}): PlaceableWorker {
  return { id, capacity: 100, automations: NAMES, draining: false, expiresAt: NOW + 1, ...change };
}

function desired(slots: Record<string, number>): PlaceInput["desired"] {
  return Object.fromEntries(
    Object.entries(slots).map(([name, count]) => [name, { slots: count, paused: false }]),
  );
}

/** How many slots each worker got, of one automation or of all. */
function counts(assignments: Assignments, workers: readonly PlaceableWorker[], name?: string): number[] {
  return workers.map(
    ({ id }) =>
      Object.entries(assignments)
        .filter(([automation]) => name === undefined || automation === name)
        .flatMap(([, slots]) => Object.values(slots))
        .filter((holder) => holder === id).length,
  );
}

const spread = (numbers: readonly number[]) => Math.max(...numbers) - Math.min(...numbers);

const CORDON = { by: "test", at: NOW };
const DRAIN = { ...CORDON, incarnation: "i", deadlineMs: 1 };
const anyLabels = fc.dictionary(fc.constantFrom("region", "browser"), fc.constantFrom("eu", "us"));
/** The same automation may ask for other labels on another worker, which has another version of it. */
const anyKnown = fc.dictionary(
  fc.constantFrom(...NAMES),
  fc.record({ version: fc.constant("1"), labels: anyLabels }),
);
const anyWorker = (id: string) =>
  fc.record<PlaceableWorker>({
    id: fc.constant(id),
    capacity: fc.integer({ min: 0, max: 8 }),
    automations: fc.subarray(NAMES),
    draining: fc.boolean(),
    expiresAt: fc.constantFrom(NOW - 1, NOW, NOW + 1, NOW + 5000),
    labels: anyLabels,
    known: anyKnown,
    wish: fc.constantFrom({}, {}, {}, { cordon: CORDON }, { drain: DRAIN }, { cordon: CORDON, drain: DRAIN }),
  });
const anyWorkers = fc.tuple(...["w1", "w2", "w3", "w4"].map(anyWorker));
const anyDesired = fc.dictionary(
  fc.constantFrom(...NAMES),
  fc.record({ slots: fc.integer({ min: 0, max: 9 }), paused: fc.boolean() }),
);
/** What was assigned before may be nonsense by now: unknown workers, slots too many, automations that are gone. */
const anyCurrent: fc.Arbitrary<Assignments> = fc.dictionary(
  fc.constantFrom(...NAMES, "gone"),
  fc.dictionary(fc.nat({ max: 12 }).map(String), fc.constantFrom("w1", "w2", "w3", "w4", "ghost")),
);
const anyInput: fc.Arbitrary<PlaceInput> = fc.record({
  desired: anyDesired,
  workers: anyWorkers,
  current: anyCurrent,
});

const fits = ({ capacity, expiresAt, draining, wish }: PlaceableWorker) =>
  capacity > 0 && expiresAt > NOW && !draining && wish?.drain === undefined;
const suits = ({ automations, labels = {}, known = {} }: PlaceableWorker, name: string) =>
  automations.includes(name) &&
  Object.entries(known[name]?.labels ?? {}).every(([label, value]) => labels[label] === value);

/** Little room, and automations that suit few workers. */
const tightInput: fc.Arbitrary<PlaceInput> = fc.record({
  desired: fc.dictionary(
    fc.constantFrom("a", "b", "c", "d"),
    fc.record({ slots: fc.integer({ min: 0, max: 4 }), paused: fc.constant(false) }),
  ),
  workers: fc.tuple(
    ...["w1", "w2", "w3", "w4", "w5"].map((id) =>
      fc.record<PlaceableWorker>({
        id: fc.constant(id),
        capacity: fc.integer({ min: 0, max: 3 }),
        automations: fc.subarray(["a", "b", "c", "d"], { maxLength: 3 }),
        draining: fc.constant(false),
        expiresAt: fc.constantFrom(NOW, NOW + 1, NOW + 1, NOW + 1),
        wish: fc.constantFrom({}, {}, {}, {}, { cordon: CORDON }, { drain: DRAIN }),
      }),
    ),
  ),
  current: anyCurrent,
});

/**
 * How many slots can be placed together at most, by Ore's form of Hall's theorem: some automations together lack what they want beyond
 * the room of all workers that suit any of them, and the worst of these is what must wait.
 */
function mostOf(
  wanted: readonly { name: string; slots: number }[],
  workers: readonly PlaceableWorker[],
): number {
  let total = 0;
  for (const { slots } of wanted) total += slots;
  let lacking = 0;
  for (let subset = 0; subset < 2 ** wanted.length; subset++) {
    const some = wanted.filter((_, at) => (subset >> at) % 2 === 1);
    const able = workers.filter((one) => some.some(({ name }) => suits(one, name)));
    const want = some.reduce((sum, { slots }) => sum + slots, 0);
    lacking = Math.max(lacking, want - able.reduce((sum, { capacity }) => sum + capacity, 0));
  }
  return total - lacking;
}

describe("place", () => {
  it("gives slots only to live workers that know the automation and bear what it asks for there", () => {
    fc.assert(
      fc.property(anyInput, (input) => {
        const byId = new Map(input.workers.map((one) => [one.id, one]));
        for (const [name, slots] of Object.entries(place(input, NOW)))
          for (const id of Object.values(slots)) {
            const holder = byId.get(id) as PlaceableWorker;
            expect(suits(holder, name)).toBe(true);
            expect(fits(holder)).toBe(true);
          }
      }),
    );
  });

  it("leaves a cordoned worker what it has, as far as that is still wanted and has room there, and gives it nothing new", () => {
    fc.assert(
      fc.property(anyInput, (input) => {
        const placed = place(input, NOW);
        for (const one of input.workers.filter(({ wish }) => wish?.cordon !== undefined)) {
          const slotsOf = (assignments: Assignments) =>
            Object.entries(assignments)
              .toSorted(([a], [b]) => (a < b ? -1 : 1))
              .flatMap(([name, slots]) =>
                Object.keys(slots)
                  .map(Number)
                  .toSorted((a, b) => a - b)
                  .filter((slotId) => slots[slotId] === one.id)
                  .map((slotId) => `${name}/${slotId}`),
              );
          const wanted = slotsOf(input.current).filter((slot) => {
            const [name = "", slotId] = slot.split("/");
            const { slots = 0, paused = true } = input.desired[name] ?? {};
            return fits(one) && suits(one, name) && !paused && Number(slotId) < slots;
          });
          expect(slotsOf(placed)).toEqual(wanted.slice(0, one.capacity));
        }
      }),
      { numRuns: 500 },
    );
  });

  it("never goes above a worker's capacity", () => {
    fc.assert(
      fc.property(anyInput, (input) => {
        for (const [at, count] of counts(place(input, NOW), input.workers).entries())
          expect(count).toBeLessThanOrEqual(input.workers[at]?.capacity ?? 0);
      }),
    );
  });

  it("assigns only slots that are desired and not paused", () => {
    fc.assert(
      fc.property(anyInput, (input) => {
        for (const [name, slots] of Object.entries(place(input, NOW))) {
          expect(input.desired[name]?.paused).toBe(false);
          for (const slotId of Object.keys(slots).map(Number))
            expect(slotId).toBeLessThan(input.desired[name]?.slots ?? 0);
        }
      }),
    );
  });

  it("leaves a slot without a worker only when all that suit it are full or cordoned", () => {
    fc.assert(
      fc.property(anyInput, (input) => {
        const placed = place(input, NOW);
        const load = counts(placed, input.workers);
        const open = (name: string) =>
          input.workers.some(
            (one, at) =>
              fits(one) &&
              one.wish?.cordon === undefined &&
              suits(one, name) &&
              (load[at] as number) < one.capacity,
          );
        const waiting = Object.entries(input.desired)
          .filter(([name, { slots, paused }]) => !paused && Object.keys(placed[name] ?? {}).length < slots)
          .map(([name]) => name);
        expect(waiting.filter(open)).toEqual([]);
      }),
    );
  });

  it("places as many slots as can be placed at all, beside what cordoned workers keep", () => {
    fc.assert(
      fc.property(tightInput, (input) => {
        const placed = place(input, NOW);
        const open = input.workers.filter((one) => fits(one) && one.wish?.cordon === undefined);
        const kept = input.workers.filter((one) => !open.includes(one));
        const waiting = Object.entries(input.desired).map(([name, { slots }]) => ({
          name,
          slots: slots - counts(placed, kept, name).reduce((sum, count) => sum + count, 0),
        }));
        const got = counts(placed, open).reduce((sum, count) => sum + count, 0);
        expect(got).toBe(mostOf(waiting, open));
        // And each worker keeps to its capacity, and another look moves nothing.
        for (const [at, count] of counts(placed, input.workers).entries())
          expect(count).toBeLessThanOrEqual(input.workers[at]?.capacity ?? 0);
        expect(place({ ...input, current: placed }, NOW)).toEqual(placed);
      }),
      { numRuns: 2000 },
    );
  });

  it("settles: what it answered it answers again", () => {
    fc.assert(
      fc.property(anyInput, (input) => {
        const once = place(input, NOW);
        expect(place({ ...input, current: once }, NOW)).toEqual(once);
      }),
      { numRuns: 500 },
    );
  });

  it("does not depend on the order in which workers and automations come", () => {
    fc.assert(
      fc.property(anyInput, (input) => {
        const turned = {
          ...input,
          workers: input.workers.toReversed(),
          desired: Object.fromEntries(Object.entries(input.desired).toReversed()),
        };
        expect(place(turned, NOW)).toEqual(place(input, NOW));
      }),
    );
  });

  const roomy = fc.record({
    slots: fc.record({ a: fc.nat({ max: 20 }), b: fc.nat({ max: 20 }) }),
    workers: fc.integer({ min: 1, max: 5 }),
  });
  const workersOf = (count: number) => Array.from({ length: count }, (_, i) => worker(`w${i + 1}`));

  it("spreads each automation evenly over workers that have room", () => {
    fc.assert(
      fc.property(roomy, ({ slots, workers: count }) => {
        const workers = workersOf(count);
        const placed = place({ desired: desired(slots), workers, current: {} }, NOW);
        for (const name of Object.keys(slots))
          expect(spread(counts(placed, workers, name))).toBeLessThanOrEqual(1);
        expect(spread(counts(placed, workers))).toBeLessThanOrEqual(1);
      }),
    );
  });

  it("moves nothing in a fleet that is even already", () => {
    fc.assert(
      fc.property(roomy, fc.nat(), ({ slots, workers: count }, turn) => {
        const workers = workersOf(count);
        // Any even spread, not only the one that `place` itself would have chosen.
        let next = turn;
        const current = Object.fromEntries(
          Object.entries(slots).map(([name, number]) => [
            name,
            Object.fromEntries(
              Array.from({ length: number }, (_, slotId) => [slotId, `w${(next++ % count) + 1}`]),
            ),
          ]),
        );
        const held = Object.fromEntries(
          Object.entries(current).filter(([, byId]) => Object.keys(byId).length > 0),
        );
        expect(place({ desired: desired(slots), workers, current: held }, NOW)).toEqual(held);
      }),
    );
  });

  it("gives a joining worker its share, and moves no more than that", () => {
    fc.assert(
      fc.property(fc.nat({ max: 30 }), fc.integer({ min: 1, max: 5 }), (slots, count) => {
        const workers = workersOf(count + 1);
        const before = place(
          { desired: desired({ a: slots }), workers: workers.slice(0, count), current: {} },
          NOW,
        );
        const after = place({ desired: desired({ a: slots }), workers, current: before }, NOW);
        const joined = counts(after, workers)[count] as number;
        expect(joined).toBeGreaterThanOrEqual(Math.floor(slots / (count + 1)));
        const moved = Object.keys(after.a ?? {}).filter((id) => after.a?.[id] !== before.a?.[id]);
        expect(moved).toHaveLength(joined);
      }),
    );
  });

  it("moves only the slots of a worker that is gone", () => {
    fc.assert(
      fc.property(fc.nat({ max: 30 }), fc.integer({ min: 2, max: 5 }), (slots, count) => {
        const workers = workersOf(count);
        const before = place({ desired: desired({ a: slots }), workers, current: {} }, NOW);
        const left = workers.map((one, at) => (at === 0 ? { ...one, expiresAt: NOW } : one));
        const after = place({ desired: desired({ a: slots }), workers: left, current: before }, NOW);
        const stayed = Object.entries(before.a ?? {}).filter(([, holder]) => holder !== "w1");
        expect(after.a ?? {}).toMatchObject(Object.fromEntries(stayed));
        expect(Object.keys(after.a ?? {})).toHaveLength(slots);
      }),
    );
  });

  it("spreads an automation also where the totals are even already", () => {
    const workers = [worker("w1"), worker("w2")];
    const current = { a: { 0: "w1", 1: "w1" }, b: { 0: "w2", 1: "w2" } };
    const placed = place({ desired: desired({ a: 2, b: 2 }), workers, current }, NOW);
    expect(counts(placed, workers, "a")).toEqual([1, 1]);
    expect(counts(placed, workers, "b")).toEqual([1, 1]);
  });

  it("places a slot for which a move has made room, in the same step", () => {
    const workers = [
      worker("w1", { capacity: 1, automations: ["b"] }),
      worker("w2", { capacity: 2, automations: ["b", "c"] }),
      worker("w3", { capacity: 1, automations: ["b"] }),
    ];
    const placed = place({ desired: desired({ b: 2, c: 2 }), workers, current: {} }, NOW);
    expect(placed).toEqual({ b: { 0: "w1", 1: "w3" }, c: { 0: "w2", 1: "w2" } });
  });

  it.each([
    { capacity: [1, 10], a: 2, z: 1 },
    { capacity: [4, 20], a: 8, z: 4 },
  ])("moves others away from the one worker that suits a slot: $capacity", ({ capacity, a, z }) => {
    const workers = [
      worker("gpu-1", { capacity: capacity[0] as number, automations: ["a", "z"] }),
      worker("plain", { capacity: capacity[1] as number, automations: ["a"] }),
    ];
    // At once, and also where the others were there first.
    const alone = place({ desired: desired({ a }), workers, current: {} }, NOW);
    for (const current of [{}, alone]) {
      const placed = place({ desired: desired({ a, z }), workers, current }, NOW);
      expect(counts(placed, workers, "z")).toEqual([z, 0]);
      expect(counts(placed, workers, "a")).toEqual([0, a]);
    }
  });

  it("makes room over several workers, with no more moves than that takes", () => {
    const workers = [
      worker("w1", { capacity: 1, automations: ["a", "b"] }),
      worker("w2", { capacity: 1, automations: ["b", "c"] }),
      worker("w3", { capacity: 2, automations: ["c", "d"] }),
    ];
    const current = { b: { 0: "w1" }, c: { 0: "w2" }, d: { 0: "w3" } };
    const placed = place({ desired: desired({ a: 1, b: 1, c: 1, d: 1 }), workers, current }, NOW);
    expect(placed).toEqual({ a: { 0: "w1" }, b: { 0: "w2" }, c: { 0: "w3" }, d: { 0: "w3" } });
    // The shorter of two ways: `b` goes straight to a worker with room.
    const nearer = [...workers, worker("w4", { capacity: 1, automations: ["b"] })];
    expect(place({ desired: desired({ a: 1, b: 1, c: 1, d: 1 }), workers: nearer, current }, NOW)).toEqual({
      ...current,
      a: { 0: "w1" },
      b: { 0: "w4" },
    });
  });

  it("makes room rather with a slot that does not run yet", () => {
    const workers = [
      worker("w1", { capacity: 2, automations: ["a", "z"] }),
      worker("w2", { capacity: 9, automations: ["a"] }),
    ];
    // Slot 1 runs there already; slot 0 would come to it in this very step.
    const placed = place(
      { desired: desired({ a: 3, z: 1 }), workers, current: { a: { 1: "w1", 2: "w2" } } },
      NOW,
    );
    expect(placed).toEqual({ a: { 0: "w2", 1: "w1", 2: "w2" }, z: { 0: "w1" } });
  });

  it.each([
    ["onto a cordoned worker", { wish: { cordon: CORDON } }, {}],
    ["onto one that is to drain", { wish: { drain: DRAIN } }, {}],
    ["onto one that is gone", { expiresAt: NOW }, {}],
    ["away from a cordoned worker", {}, { wish: { cordon: CORDON } }],
  ])("makes no room %s", (_, plain, gpu) => {
    const workers = [
      worker("gpu-1", { capacity: 1, automations: ["a", "z"], ...gpu }),
      worker("plain", { capacity: 9, automations: ["a"], ...plain }),
    ];
    const current = { a: { 0: "gpu-1" } };
    expect(place({ desired: desired({ a: 1, z: 1 }), workers, current }, NOW)).toEqual(current);
  });

  it.each([
    ["to a cordoned worker", { a: { 0: "w2", 1: "w2", 2: "w2", 3: "w2" } }],
    ["away from it", { a: { 0: "w1", 1: "w1", 2: "w1", 3: "w1" } }],
  ])("evens nothing out %s", (_, current) => {
    const workers = [worker("w1", { wish: { cordon: CORDON } }), worker("w2")];
    expect(place({ desired: desired({ a: 4 }), workers, current }, NOW)).toEqual(current);
  });

  it("evens out the totals of different automations", () => {
    const workers = [worker("w1"), worker("w2")];
    const current = { a: { 0: "w1" }, b: { 0: "w1" } };
    const placed = place({ desired: desired({ a: 1, b: 1 }), workers, current }, NOW);
    expect(counts(placed, workers)).toEqual([1, 1]);
  });
});

const version = (labels: Record<string, string>) => ({ a: { version: "1", labels } });

describe("whyUnplaced", () => {
  it.each([
    ["paused", true, [worker("w1")], "paused"],
    ["nobody there", false, [worker("w1", { expiresAt: NOW })], "no worker is online"],
    [
      "nobody knows it",
      false,
      [worker("w1", { automations: ["b"] })],
      'the only live worker does not know "a"',
    ],
    ["all drain", false, [worker("w1", { draining: true })], 'all workers that know "a" are draining'],
    ["all full", false, [worker("w1", { capacity: 0 })], "no room"],
    [
      "some are full, the others cordoned or about to leave",
      false,
      [
        worker("w1", { capacity: 0 }),
        worker("w2", { wish: { cordon: CORDON } }),
        worker("w3", { draining: true }),
      ],
      'no room: the workers that know "a" are at their capacity, cordoned or draining',
    ],
    [
      "some are full, the others cordoned",
      false,
      [worker("w1", { capacity: 0 }), worker("w2", { wish: { cordon: CORDON } })],
      'no room: the workers that know "a" are at their capacity or cordoned',
    ],
    [
      "all are asked to drain",
      false,
      [worker("w1", { wish: { drain: DRAIN } })],
      'all workers that know "a" are draining',
    ],
    [
      "all are cordoned",
      false,
      [worker("w1", { wish: { cordon: CORDON } })],
      'all workers that know "a" are cordoned',
    ],
    [
      "some are cordoned, the others drain",
      false,
      [worker("w1", { wish: { cordon: CORDON } }), worker("w2", { draining: true })],
      'all workers that know "a" are cordoned or draining',
    ],
    [
      "nobody bears the labels, as each worker's own version asks for them",
      false,
      [
        worker("w1", { labels: { region: "us" }, known: version({ region: "eu", browser: "true" }) }),
        worker("w2", { labels: { region: "eu" }, known: version({ gpu: "true" }) }),
        worker("w3", { automations: ["b"] }),
      ],
      'no worker bears the labels that "a" asks for: w1 lacks region=eu (it has region=us) and browser=true (it has no browser), w2 lacks gpu=true (it has no gpu)',
    ],
    [
      "those that bear the labels are full",
      false,
      [
        worker("w1", { labels: { gpu: "true" }, known: version({ gpu: "true" }), capacity: 0 }),
        worker("w2", { known: version({ gpu: "true" }) }),
      ],
      'no room: the workers that know "a" and bear its labels are at their capacity',
    ],
  ])("says why: %s", (_, paused, workers, text) => {
    expect(whyUnplaced("a", paused, workers, NOW)).toContain(text);
  });
});
