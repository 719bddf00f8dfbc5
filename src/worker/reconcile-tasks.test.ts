import { describe, expect, it } from "vitest";
import { actualSlot, decide, GRACE_MS, wantedSlot } from "../../test/support/reconcile-world.ts";
import type { ActualHost, ActualSlot } from "./reconcile.ts";

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
    const hosts = [ready("a@v1"), ready("a@v2")];
    expect(decide({ wanted, slots, hosts })).toMatchObject(
      [0, 1, 2].map((slotId) => ({ do: "offer-config", host: "a@v2", slot: { slotId } })),
    );
    const offer = { configKey: "{}", host: "a@v2", version: "v2", state: "fits", retryAt: 0 } as const;
    const moves = decide({ wanted, slots: slots.map((slot) => ({ ...slot, offer })), hosts });
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
