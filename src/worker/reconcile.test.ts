import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { slotKey } from "../protocol/spec.ts";
import {
  blockKeyOf,
  reconcile,
  type Action,
  type ActualHost,
  type ActualSlot,
  type ReconcileInput,
  type WantedSlot,
} from "./reconcile.ts";

const GRACE_MS = 1000;

const wantedSlot = (change: Partial<WantedSlot> = {}): WantedSlot => ({
  automation: "a",
  slotId: 0,
  token: "1",
  version: "v1",
  config: {},
  configKey: "{}",
  generation: 1,
  slotCount: 1,
  liveConfig: false,
  isolate: "automation",
  circuitOpen: false,
  build: change.version ?? "v1",
  ...change,
});

const actualSlot = (change: Partial<ActualSlot> = {}): ActualSlot => ({
  automation: "a",
  slotId: 0,
  state: "running",
  host: "a@v1",
  token: "1",
  version: "v1",
  configKey: "{}",
  stoppingSince: 0,
  retryAt: 0,
  blockedFor: null,
  build: change.version ?? "v1",
  stuck: false,
  finishes: false,
  stopReason: null,
  overdue: false,
  starting: false,
  ...change,
});

function decide(change: Partial<ReconcileInput>, now = 0): Action[] {
  return reconcile(
    {
      wanted: [],
      slots: [],
      hosts: [],
      unwanted: new Map(),
      hostRetryAt: new Map(),
      mayMove: new Set(),
      stopGraceMs: GRACE_MS,
      ...change,
    },
    now,
  );
}

/** For what must never happen in a world, wherever it is noticed. */
function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`must hold: ${what}`);
}

const slotOf = (action: Action): string | undefined => ("slot" in action ? slotKey(action.slot) : undefined);

/** A world in which actions are carried out, as hosts would: it is told what happens, and refuses what must not. */
class World {
  wanted: WantedSlot[] = [];
  readonly slots = new Map<string, ActualSlot>();
  readonly hosts = new Map<string, ActualHost>();
  readonly retryAt = new Map<string, number>();
  readonly runs: string[] = [];
  readonly turns = new Set<string>();
  /** Automations whose turn was asked for since the last grant. */
  readonly asked = new Set<string>();

  input(): ReconcileInput {
    return {
      wanted: this.wanted,
      slots: [...this.slots.values()],
      hosts: [...this.hosts.values()],
      unwanted: new Map(),
      hostRetryAt: this.retryAt,
      mayMove: this.turns,
      stopGraceMs: GRACE_MS,
    };
  }

  pass(now: number): Action[] {
    const actions = reconcile(this.input(), now);
    for (const action of actions) this.#carryOut(action, now);
    return actions;
  }

  #carryOut(action: Action, now: number): void {
    switch (action.do) {
      case "start-host":
        must(!this.hosts.has(action.host), "a host is started once");
        this.hosts.set(action.host, { key: action.host, state: "starting", doomed: null });
        return;
      case "run": {
        must(this.hosts.get(action.host)?.state === "ready", "a slot runs on a host that is ready");
        must(
          (this.slots.get(slotKey(action.slot))?.state ?? "idle") === "idle",
          "never two runs of one slot",
        );
        const { automation, slotId, token, version, build, configKey } = action.slot;
        this.slots.set(slotKey(action.slot), {
          ...actualSlot({
            automation,
            slotId,
            token,
            version,
            build,
            configKey,
            host: action.host,
            starting: true,
          }),
        });
        this.runs.push(slotKey(action.slot));
        return;
      }
      case "reconfigure":
        return this.#change(action.slot, { configKey: action.slot.configKey });
      case "stop":
        must(this.slots.get(slotKey(action.slot))?.state === "running", "only what runs is stopped");
        return this.#change(action.slot, { state: "stopping", stoppingSince: now });
      case "close-host":
        must(
          [...this.slots.values()].every((slot) => slot.host !== action.host || slot.state === "idle"),
          "a host is closed when nothing runs on it",
        );
        return void this.hosts.delete(action.host);
      case "ask-turn":
        must(!this.turns.has(action.automation), "a turn is asked for where there is none");
        return void this.asked.add(action.automation);
      case "end-turn":
        must(
          [...this.slots.values()].every((slot) => slot.state !== "stopping" && !slot.starting),
          "a turn is kept while a slot is down",
        );
        return void this.turns.delete(action.automation);
      case "kill-host":
        return this.lose(action.host);
    }
  }

  #change(slot: { automation: string; slotId: number }, change: Partial<ActualSlot>): void {
    const key = slotKey(slot);
    this.slots.set(key, { ...(this.slots.get(key) as ActualSlot), ...change });
  }

  ready(host: string): void {
    if (this.hosts.get(host)?.state === "starting")
      this.hosts.set(host, { key: host, state: "ready", doomed: null });
  }

  /** The turns that were asked for are given. */
  grant(): void {
    for (const automation of this.asked) this.turns.add(automation);
    this.asked.clear();
  }

  /** A host's process ends, and all its slots with it. */
  lose(host: string): void {
    this.hosts.delete(host);
    for (const slot of this.slots.values())
      if (slot.host === host && slot.state !== "idle")
        this.#change(slot, { state: "idle", host: null, starting: false });
  }

  end(key: string, retryAt = 0): void {
    const slot = this.slots.get(key);
    if (slot !== undefined && slot.state !== "idle")
      this.#change(slot, { state: "idle", host: null, starting: false, retryAt });
  }

  /** The code of all slots that were told to run has begun. */
  begin(): void {
    for (const slot of this.slots.values()) this.#change(slot, { starting: false });
  }

  running(): string[] {
    return [...this.slots.values()]
      .filter(({ state }) => state === "running")
      .map(slotKey)
      .toSorted();
  }
}

type Step =
  | { kind: "want"; slots: WantedSlot[] }
  | { kind: "ready"; host: number }
  | { kind: "begin" }
  | { kind: "grant" }
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
        for (let round = 0; round < 30; round++) {
          world.begin();
          for (const slot of world.slots.values()) if (slot.state === "stopping") world.end(slotKey(slot));
          for (const host of world.hosts.keys()) world.ready(host);
          world.grant();
          world.pass((now += 10));
        }
        expect([...world.turns]).toEqual([]);
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

describe("reconcile", () => {
  it("starts a host first, and the slot once the host is ready", () => {
    const wanted = [wantedSlot()];
    expect(decide({ wanted })).toEqual([{ do: "start-host", host: "a@v1", automation: "a" }]);
    expect(decide({ wanted, hosts: [{ key: "a@v1", state: "starting", doomed: null }] })).toEqual([]);
    expect(decide({ wanted, hosts: [{ key: "a@v1", state: "ready", doomed: null }] })).toEqual([
      { do: "run", host: "a@v1", slot: wanted[0] },
    ]);
  });

  it("gives each slot a host of its own with isolate: slot", () => {
    const wanted = [0, 1].map((slotId) => wantedSlot({ slotId, isolate: "slot" }));
    expect(decide({ wanted }).map((action) => "host" in action && action.host)).toEqual(["a/0@v1", "a/1@v1"]);
  });

  it("leaves the old version running until the new one is ready", () => {
    const input = { wanted: [wantedSlot({ version: "v2" })], slots: [actualSlot()] };
    const old: ActualHost = { key: "a@v1", state: "ready", doomed: null };
    expect(decide({ ...input, hosts: [old] })).toEqual([{ do: "start-host", host: "a@v2", automation: "a" }]);
    expect(decide({ ...input, hosts: [old, { key: "a@v2", state: "starting", doomed: null }] })).toEqual([]);
    const hosts: ActualHost[] = [old, { key: "a@v2", state: "ready", doomed: null }];
    expect(decide({ ...input, hosts })).toEqual([{ do: "ask-turn", automation: "a" }]);
    expect(decide({ ...input, hosts, mayMove: new Set(["a"]) })).toEqual([
      { do: "stop", host: "a@v1", slot: input.slots[0], reason: "reload" },
    ]);
  });

  it("leaves the old version running when the new one cannot be loaded", () => {
    const world = new World();
    world.wanted = [wantedSlot()];
    world.pass(0);
    world.ready("a@v1");
    world.pass(0);
    world.wanted = [wantedSlot({ version: "v2" })];
    for (let now = 0; now < 10_000; now += 500) {
      world.pass(now);
      if (world.hosts.has("a@v2")) world.retryAt.set("a@v2", now + 2000);
      world.lose("a@v2");
      expect(world.running()).toEqual(["a/0"]);
    }
    expect(world.runs).toEqual(["a/0"]);
    expect([...world.hosts.keys()]).toEqual(["a@v1"]);
  });

  it("keeps a host without slots for as long as it is awaited", () => {
    const hosts: ActualHost[] = [{ key: "a@v1", state: "ready", doomed: null }];
    expect(decide({ hosts, awaited: new Set(["a@v1"]) }, 0)).toEqual([]);
    expect(decide({ hosts, awaited: new Set(["a@v2"]) }, 0)).toEqual([{ do: "close-host", host: "a@v1" }]);
  });

  it("waits out the back-off of a host and of a slot", () => {
    expect(decide({ wanted: [wantedSlot()], hostRetryAt: new Map([["a@v1", 100]]) }, 99)).toEqual([]);
    expect(decide({ wanted: [wantedSlot()], hostRetryAt: new Map([["a@v1", 100]]) }, 100)).toHaveLength(1);
    const slots = [actualSlot({ state: "idle", host: null, retryAt: 100 })];
    const hosts: ActualHost[] = [{ key: "a@v1", state: "ready", doomed: null }];
    expect(decide({ wanted: [wantedSlot()], slots, hosts }, 99)).toEqual([]);
    expect(decide({ wanted: [wantedSlot()], slots, hosts }, 100)).toHaveLength(1);
  });

  it("takes a config live where the automation can, and restarts the slot where it cannot", () => {
    const slots = [actualSlot()];
    const hosts: ActualHost[] = [{ key: "a@v1", state: "ready", doomed: null }];
    const live = wantedSlot({ configKey: "x", liveConfig: true });
    expect(decide({ wanted: [live], slots, hosts })).toEqual([
      { do: "reconfigure", host: "a@v1", slot: live },
    ]);
    expect(decide({ wanted: [wantedSlot({ configKey: "x" })], slots, hosts })).toEqual([
      { do: "stop", host: "a@v1", slot: slots[0], reason: "config" },
    ]);
  });

  it("restarts a slot whose lease is a new one", () => {
    expect(
      decide({
        wanted: [wantedSlot({ token: "2" })],
        slots: [actualSlot()],
        hosts: [{ key: "a@v1", state: "ready", doomed: null }],
      }),
    ).toMatchObject([{ do: "stop", reason: "lease-lost" }]);
  });

  it("does not try a blocked config again, but a new one", () => {
    const blockedFor = blockKeyOf(wantedSlot());
    const slots = [actualSlot({ state: "idle", host: null, blockedFor })];
    const hosts: ActualHost[] = [{ key: "a@v1", state: "ready", doomed: null }];
    expect(decide({ wanted: [wantedSlot()], slots, hosts })).toEqual([{ do: "close-host", host: "a@v1" }]);
    expect(decide({ wanted: [wantedSlot({ configKey: "x" })], slots, hosts })).toMatchObject([{ do: "run" }]);
  });

  it("kills the host of a slot that does not stop within its grace", () => {
    const slots = [actualSlot({ state: "stopping", stoppingSince: 500 })];
    const hosts: ActualHost[] = [{ key: "a@v1", state: "ready", doomed: null }];
    expect(decide({ slots, hosts }, 500 + GRACE_MS)).toEqual([]);
    expect(decide({ slots, hosts }, 501 + GRACE_MS)).toEqual([
      { do: "kill-host", host: "a@v1", cause: "would-not-stop", slots: [{ automation: "a", slotId: 0 }] },
    ]);
  });

  it("stops what is not wanted, with its reason, and closes the empty host", () => {
    const slots = [actualSlot()];
    const hosts: ActualHost[] = [{ key: "a@v1", state: "ready", doomed: null }];
    expect(decide({ slots, hosts })).toMatchObject([{ do: "stop", reason: "scaled" }]);
    expect(decide({ slots, hosts, unwanted: new Map([["a/0", "drain"]]) })).toMatchObject([
      { do: "stop", reason: "drain" },
    ]);
    expect(decide({ hosts })).toEqual([{ do: "close-host", host: "a@v1" }]);
  });

  it("moves the slots of an automation one by one, each when the one before runs again", () => {
    const world = new World();
    world.wanted = [0, 1, 2].map((slotId) => wantedSlot({ slotId }));
    world.pass(0);
    world.ready("a@v1");
    world.pass(0);
    world.begin();
    world.wanted = [0, 1, 2].map((slotId) => wantedSlot({ slotId, build: "v1#1.0" }));
    world.pass(0);
    expect(world.running()).toHaveLength(3);
    world.ready("a@v1#1.0");
    expect(world.pass(0)).toEqual([{ do: "ask-turn", automation: "a" }]);
    world.grant();
    for (let moved = 0; moved < 3; moved++) {
      world.pass(0);
      expect(world.running()).toHaveLength(2);
      for (const slot of world.slots.values()) if (slot.state === "stopping") world.end(slotKey(slot));
      world.pass(0);
      expect(world.running()).toHaveLength(3);
      // Told to run is not running yet: nothing more moves until its code has begun.
      expect(world.pass(0)).toEqual([]);
      world.begin();
    }
    expect([...world.turns]).toEqual(["a"]);
    world.pass(0);
    expect([...world.hosts.keys()]).toEqual(["a@v1#1.0"]);
    expect([...world.turns]).toEqual([]);
  });

  it("gives the turn back while the next process is loaded, and asks for it again", () => {
    const world = new World();
    world.wanted = [0, 1].map((slotId) => wantedSlot({ slotId, isolate: "slot" }));
    world.pass(0);
    for (const host of world.hosts.keys()) world.ready(host);
    world.pass(0);
    world.begin();
    world.wanted = [0, 1].map((slotId) => wantedSlot({ slotId, isolate: "slot", build: "b2" }));
    world.pass(0);
    world.ready("a/0@b2");
    world.pass(0);
    world.grant();
    world.pass(0);
    world.end("a/0");
    world.pass(0);
    expect([...world.turns]).toEqual(["a"]);
    world.begin();
    world.pass(0);
    expect([...world.turns]).toEqual([]);
    expect(world.hosts.get("a/1@b2")?.state).toBe("starting");
    world.ready("a/1@b2");
    expect(world.pass(0)).toEqual([{ do: "ask-turn", automation: "a" }]);
  });

  it("stops a slot that is stuck; kills a doomed host at once and touches its slots no further", () => {
    const hosts: ActualHost[] = [{ key: "a@v1", state: "ready", doomed: null }];
    const slots = [actualSlot({ stuck: true }), actualSlot({ slotId: 1 })];
    const wanted = [wantedSlot(), wantedSlot({ slotId: 1 })];
    expect(decide({ wanted, slots, hosts })).toMatchObject([
      { do: "stop", slot: { slotId: 0 }, reason: "stuck" },
    ]);
    const doomed: ActualHost[] = [{ key: "a@v1", state: "ready", doomed: "loop-blocked" }];
    expect(decide({ wanted, slots, hosts: doomed })).toEqual([
      { do: "kill-host", host: "a@v1", cause: "loop-blocked", slots: [] },
    ]);
  });

  it("does not start a slot whose circuit is open, nor a host for it", () => {
    expect(decide({ wanted: [wantedSlot({ circuitOpen: true })] })).toEqual([]);
  });
});

describe("reconcile, for slots that finish their tasks", () => {
  const ready = (key: string): ActualHost => ({ key, state: "ready", doomed: null });
  const busy = (change: Partial<ActualSlot> = {}) => actualSlot({ finishes: true, ...change });
  const stopping = (stopReason: ActualSlot["stopReason"], change: Partial<ActualSlot> = {}) =>
    busy({ state: "stopping", stopReason, stoppingSince: 0, ...change });

  it("waits for the end of a task for as long as it takes, but not where it must not or does not get on", () => {
    const after = (slot: ActualSlot) =>
      decide({ slots: [slot], hosts: [ready("a@v1")] }, GRACE_MS + 1).filter(
        (action) => action.do === "kill-host",
      );
    for (const reason of ["scaled", "paused", "reload", "recycle", "config"] as const)
      expect(after(stopping(reason))).toEqual([]);
    for (const reason of ["stuck", "lease-lost"] as const)
      expect(after(stopping(reason))).toMatchObject([{ cause: "would-not-stop", slots: [{ slotId: 0 }] }]);
  });

  it("does not wait for what gets stuck meanwhile", () => {
    const of = (slot: ActualSlot) =>
      decide({ slots: [slot], hosts: [ready("a@v1")], unwanted: new Map([["a/0", "paused"]]) }, GRACE_MS + 1);
    const stuck = { do: "stop", host: "a@v1", slot: { slotId: 0 }, reason: "stuck" };
    expect(of(stopping("paused", { stuck: true }))).toMatchObject([stuck]);
    // Once.
    expect(of(stopping("stuck", { stuck: true, stoppingSince: GRACE_MS }))).toEqual([]);
  });

  it("lets them move all together and without a turn, once their new host is ready", () => {
    const wanted = [0, 1, 2].map((slotId) => wantedSlot({ slotId, version: "v2", build: "v2" }));
    const slots = [0, 1, 2].map((slotId) => busy({ slotId }));
    expect(decide({ wanted, slots, hosts: [ready("a@v1")] })).toEqual([
      { do: "start-host", host: "a@v2", automation: "a" },
    ]);
    const moves = decide({ wanted, slots, hosts: [ready("a@v1"), ready("a@v2")] });
    expect(moves).toMatchObject(
      [0, 1, 2].map((slotId) => ({ do: "stop", slot: { slotId }, reason: "reload" })),
    );
  });

  it("tells one that is finishing its task when its lease is lost meanwhile, once", () => {
    const lost = { unwanted: new Map([["a/0", "lease-lost" as const]]), hosts: [ready("a@v1")] };
    expect(decide({ slots: [stopping("scaled")], ...lost })).toMatchObject([
      { do: "stop", reason: "lease-lost" },
    ]);
    expect(decide({ slots: [stopping("lease-lost")], ...lost })).toEqual([]);
    const another = { wanted: [wantedSlot({ token: "2" })], hosts: [ready("a@v1")] };
    expect(decide({ slots: [stopping("scaled")], ...another })).toMatchObject([
      { do: "stop", reason: "lease-lost" },
    ]);
    expect(decide({ slots: [stopping("scaled")], hosts: [ready("a@v1")] })).toEqual([]);
  });

  it("kills the host of a task that outlived its timeout, and names the slot", () => {
    const slots = [busy({ overdue: true }), busy({ slotId: 1 })];
    const wanted = [0, 1].map((slotId) => wantedSlot({ slotId }));
    expect(decide({ wanted, slots, hosts: [ready("a@v1")] })).toEqual([
      { do: "kill-host", host: "a@v1", cause: "task-timeout", slots: [{ automation: "a", slotId: 0 }] },
    ]);
  });
});
