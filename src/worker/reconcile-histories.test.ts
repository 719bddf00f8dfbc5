// What holds for `reconcile` whatever happens, by random histories. Single decisions: reconcile.test.ts, reconcile-tasks.test.ts.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GRACE_MS, slotOf, wantedSlot, World } from "../../test/support/reconcile-world.ts";
import { slotKey } from "../protocol/spec.ts";
import { reconcile, type Action, type WantedSlot } from "./reconcile.ts";

type Step =
  | { kind: "want"; slots: WantedSlot[] }
  | { kind: "ready"; host: number }
  | { kind: "begin" }
  | { kind: "grant" }
  | { kind: "answer"; fits: boolean }
  | { kind: "lose"; host: number }
  | { kind: "end"; slot: number; retryIn: number }
  | { kind: "time"; ms: number };

const anyWanted = fc.uniqueArray(
  fc
    .record({
      automation: fc.constantFrom("a", "b"),
      slotId: fc.nat({ max: 2 }),
      token: fc.constantFrom("1", "2"),
      version: fc.constantFrom("v1", "v2"),
      build: fc.constantFrom("b1", "b2"),
      configKey: fc.constantFrom("{}", '{"n":1}'),
      circuitOpen: fc.boolean(),
      liveConfig: fc.boolean(),
    })
    // The version is the code's hash, and the code says how it is isolated: one never changes without the other.
    .map((change) => wantedSlot({ ...change, isolate: change.version === "v1" ? "automation" : "slot" })),
  { selector: slotKey, maxLength: 6 },
);
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  anyWanted.map((slots): Step => ({ kind: "want", slots })),
  fc.nat({ max: 5 }).map((host): Step => ({ kind: "ready", host })),
  fc.nat({ max: 5 }).map((host): Step => ({ kind: "lose", host })),
  fc.constant<Step>({ kind: "begin" }),
  fc.constant<Step>({ kind: "grant" }),
  fc.boolean().map((fits): Step => ({ kind: "answer", fits })),
  fc
    .tuple(fc.nat({ max: 5 }), fc.nat({ max: 3000 }))
    .map(([slot, retryIn]): Step => ({ kind: "end", slot, retryIn })),
  fc.integer({ min: -2000, max: 2000 }).map((ms): Step => ({ kind: "time", ms })),
);

/** Plays a history, one pass after each step; `after` looks at what each pass decided. */
function play(steps: readonly Step[], after: (world: World, actions: Action[], now: number) => void): World {
  const world = new World();
  let now = 10_000;
  for (const step of steps) {
    const host = "host" in step ? [...world.hosts.keys()][step.host] : undefined;
    if (step.kind === "want") world.wanted = step.slots;
    if (step.kind === "ready" && host !== undefined) world.ready(host);
    if (step.kind === "begin") world.begin();
    if (step.kind === "grant") world.grant();
    if (step.kind === "answer") world.answer(step.fits, now);
    if (step.kind === "lose" && host !== undefined) world.lose(host);
    if (step.kind === "end") world.end([...world.slots.keys()][step.slot] ?? "", now + step.retryIn);
    if (step.kind === "time") now += step.ms;
    after(world, world.pass(now), now);
  }
  return world;
}

const anyHistory = fc.array(anyStep, { maxLength: 30 });

describe("reconcile, whatever happens", () => {
  it("decides at most one action per slot and one per host", () => {
    fc.assert(
      fc.property(anyHistory, (steps) => {
        play(steps, (_, actions) => {
          const slots = actions.map(slotOf).filter((key) => key !== undefined);
          expect(new Set(slots).size).toBe(slots.length);
          const hosts = actions.flatMap((action) =>
            "host" in action && !("slot" in action) ? [action.host] : [],
          );
          expect(new Set(hosts).size).toBe(hosts.length);
        });
      }),
    );
  });

  it("has nothing left to do after one pass, until something happens", () => {
    fc.assert(
      fc.property(anyHistory, (steps) => {
        play(steps, (world, actions, now) => {
          // A kill ends slots, which is something that happened.
          const killed = actions.some((action) => action.do === "kill-host");
          // A turn is asked for until it is given.
          const left = reconcile(world.input(), now).filter((action) => action.do !== "ask-turn");
          expect(killed ? [] : left).toEqual([]);
        });
      }),
      { numRuns: 300 },
    );
  });

  it("starts nothing that has not ended, and kills no host before its grace is over", () => {
    // The world itself refuses a run of a slot that has not ended, and a run on a host that is not ready.
    fc.assert(
      fc.property(anyHistory, (steps) => {
        play(steps, (world, actions, now) => {
          const late = [...world.slots.values()].some(({ stoppingSince }) => now - stoppingSince > GRACE_MS);
          expect(late || !actions.some((action) => action.do === "kill-host")).toBe(true);
        });
      }),
    );
  });

  it("comes to rest with exactly the wanted slots running, once hosts come up and slots end", () => {
    fc.assert(
      fc.property(anyHistory, (steps) => {
        const world = play(steps, () => undefined);
        let now = 1_000_000;
        for (let round = 0; round < 40; round++) {
          world.begin();
          for (const slot of world.slots.values()) if (slot.state === "stopping") world.end(slotKey(slot));
          world.answer(true, now);
          for (const host of world.hosts.keys()) world.ready(host);
          world.grant();
          world.pass((now += 10));
        }
        expect([...world.turns]).toEqual([]);
        const configs = new Map(world.wanted.map((slot) => [slotKey(slot), slot.configKey]));
        const stale = [...world.slots].filter(
          ([key, { state, configKey }]) => state === "running" && configKey !== configs.get(key),
        );
        expect(stale).toEqual([]);
        // An open circuit keeps a slot from being started, not from running on.
        const startable = world.wanted.filter((slot) => !slot.circuitOpen).map(slotKey);
        expect(world.running()).toEqual(expect.arrayContaining(startable));
        const hosts = [...world.slots.values()].flatMap(({ state, host }) =>
          state === "running" && host !== null ? [host] : [],
        );
        expect([...world.hosts.keys()].toSorted()).toEqual([...new Set(hosts)].toSorted());
      }),
      { numRuns: 300 },
    );
  });

  it("starts nothing twice when the clock jumps back", () => {
    fc.assert(
      fc.property(anyWanted, fc.integer({ min: 1, max: 1e9 }), (slots, jump) => {
        const world = new World();
        world.wanted = slots;
        world.pass(2e9);
        for (const host of world.hosts.keys()) world.ready(host);
        world.pass(2e9);
        const runs = world.runs.length;
        expect(world.pass(2e9 - jump)).toEqual([]);
        expect(world.runs).toHaveLength(runs);
        expect(runs).toBe(slots.filter((slot) => !slot.circuitOpen).length);
      }),
    );
  });
});
