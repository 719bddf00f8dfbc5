import { describe, expect, it } from "vitest";
import { actualSlot, decide, GRACE_MS, wantedSlot, World } from "../../test/support/reconcile-world.ts";
import { slotKey } from "../protocol/spec.ts";
import { blockKeyOf, type ActualHost, type ActualSlot } from "./reconcile.ts";

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

  it("leaves the old version running until the new one is ready and takes the config", () => {
    const input = { wanted: [wantedSlot({ version: "v2" })], slots: [actualSlot()] };
    const old: ActualHost = { key: "a@v1", state: "ready", doomed: null };
    expect(decide({ ...input, hosts: [old] })).toEqual([{ do: "start-host", host: "a@v2", automation: "a" }]);
    expect(decide({ ...input, hosts: [old, { key: "a@v2", state: "starting", doomed: null }] })).toEqual([]);
    const hosts: ActualHost[] = [old, { key: "a@v2", state: "ready", doomed: null }];
    const [target] = input.wanted;
    const ask = { do: "offer-config", host: "a@v2", slot: target, live: false };
    expect(decide({ ...input, hosts })).toEqual([ask]);
    const mayMove = new Set(["a"]);
    const told = (state: "sent" | "fits" | "refused", host = "a@v2") =>
      actualSlot({ offer: { configKey: "{}", host, version: "v2", state, retryAt: 100 } });
    for (const state of ["sent", "refused"] as const) {
      const slots = [told(state)];
      expect(decide({ ...input, slots, hosts, mayMove }, 99)).toEqual([{ do: "end-turn", automation: "a" }]);
      expect(decide({ ...input, slots, hosts }, 100)).toEqual([ask]);
    }
    // What its own process has said of it counts for nothing.
    expect(decide({ ...input, slots: [told("fits", "a@v1")], hosts })).toEqual([ask]);
    const slots = [told("fits")];
    expect(decide({ ...input, slots, hosts })).toEqual([{ do: "ask-turn", automation: "a" }]);
    expect(decide({ ...input, slots, hosts, mayMove })).toEqual([
      { do: "stop", host: "a@v1", slot: slots[0], reason: "reload" },
    ]);
  });

  it("recycles a slot whose config is refused all the same: it starts with what it had", () => {
    const wanted = [wantedSlot({ build: "v1#1.0", configKey: "x" })];
    const hosts: ActualHost[] = ["a@v1", "a@v1#1.0"].map((key) => ({ key, state: "ready", doomed: null }));
    const mayMove = new Set(["a"]);
    const of = (state: "sent" | "refused") =>
      decide({
        wanted,
        hosts,
        mayMove,
        slots: [
          actualSlot({ offer: { configKey: "x", host: "a@v1#1.0", version: "v1", state, retryAt: 9 } }),
        ],
      }).map((action) => action.do);
    expect(of("sent")).toEqual(["end-turn"]);
    expect(of("refused")).toEqual(["stop"]);
    // With the config that it has there is nothing to ask.
    expect(
      decide({ wanted: [wantedSlot({ build: "v1#1.0" })], hosts, mayMove, slots: [actualSlot()] }),
    ).toMatchObject([{ do: "stop", reason: "recycle" }]);
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

  it("offers a config to be taken live where the automation can, and else asks whether it fits", () => {
    const slots = [actualSlot()];
    const hosts: ActualHost[] = [{ key: "a@v1", state: "ready", doomed: null }];
    for (const liveConfig of [true, false]) {
      const slot = wantedSlot({ configKey: "x", liveConfig });
      expect(decide({ wanted: [slot], slots, hosts })).toEqual([
        { do: "offer-config", host: "a@v1", slot, live: liveConfig },
      ]);
      expect(decide({ wanted: [slot], slots: [actualSlot({ starting: true })], hosts })).toEqual([]);
    }
  });

  it("restarts slots one by one with a config that fits, in its turn", () => {
    const offer = { configKey: "x", host: "a@v1", version: "v1", state: "fits", retryAt: 0 } as const;
    const slots = [0, 1].map((slotId) => actualSlot({ slotId, offer }));
    const wanted = [0, 1].map((slotId) => wantedSlot({ slotId, configKey: "x" }));
    const hosts: ActualHost[] = [{ key: "a@v1", state: "ready", doomed: null }];
    expect(decide({ wanted, slots, hosts })).toEqual([{ do: "ask-turn", automation: "a" }]);
    const mayMove = new Set(["a"]);
    expect(decide({ wanted, slots, hosts, mayMove })).toEqual([
      { do: "stop", host: "a@v1", slot: slots[0], reason: "config" },
    ]);
    const down = [actualSlot({ offer, state: "stopping" }), slots[1] as ActualSlot];
    expect(decide({ wanted, slots: down, hosts, mayMove })).toEqual([]);
    // Slots that finish their tasks take nothing down: they stop as soon as they have.
    const finishing = slots.map((slot) => ({ ...slot, finishes: true }));
    expect(decide({ wanted, slots: finishing, hosts })).toHaveLength(2);
  });

  it("leaves a slot alone whose process has refused the config, and offers it again after a pause", () => {
    const offer = { configKey: "x", host: "a@v1", version: "v1", state: "refused", retryAt: 100 } as const;
    const slots = [actualSlot({ offer })];
    const hosts: ActualHost[] = [{ key: "a@v1", state: "ready", doomed: null }];
    const offers = (configKey: string, now: number) =>
      decide({ wanted: [wantedSlot({ configKey })], slots, hosts }, now).map((action) => action.do);
    expect(offers("x", 99)).toEqual([]);
    expect(offers("x", 100)).toEqual(["offer-config"]);
    expect(offers("y", 0)).toEqual(["offer-config"]);
    expect(offers("{}", 0)).toEqual([]);
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
