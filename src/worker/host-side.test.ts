import { describe, expect, it } from "vitest";
import { SILENT } from "../internal/log.ts";
import { machineMs, monotonicMs } from "../internal/timers.ts";
import type { FromHost, ToHost } from "../protocol/host.ts";
import type { Program } from "../protocol/program.ts";
import type { WorkerInfo } from "../protocol/status.ts";
import type { HeldLease, Store } from "../store/store.ts";
import { Books } from "./books.ts";
import { HostSide } from "./host-side.ts";
import { Membership } from "./membership.ts";
import type { Runtime } from "./runtime.ts";
import { workerTimings } from "./timings.ts";

const LEASE_MS = 10_000;
const program: Program = {
  automations: [
    {
      manifest: {
        name: "a",
        kind: "continuous",
        version: "v1",
        configSchema: null,
        output: null,
        tasks: null,
        stateSchema: null,
        uses: {},
        liveConfig: false,
      },
      module: "/m.js",
      source: "/m.ts",
      isolate: "automation",
    },
  ],
  deploy: {},
};
const lease = (slotId: number, token: string): HeldLease => ({ automation: "a", slotId, token });

/** A worker with two slots on one host that does as it is told; the store side is the test. */
function worker() {
  const told: ToHost[] = [];
  let stirred = 0;
  let hear: (message: FromHost) => void = () => undefined;
  const runtime: Runtime = {
    start: (_, onMessage) => {
      hear = onMessage;
      const flight = () => ({ lastSlot: null, endedBy: null, tasks: [] });
      return {
        pid: 1,
        holder: "i.1",
        flight,
        tell: (message) => void told.push(message),
        kill: () => undefined,
      };
    },
    close: () => Promise.resolve(),
  };
  const member = new Membership({
    store: {} as Store,
    worker: { id: "w", incarnation: "i", draining: false } as WorkerInfo,
    program,
    ttlMs: LEASE_MS,
    log: SILENT,
  });
  const books = new Books({
    program,
    member,
    timings: workerTimings({ leaseMs: LEASE_MS }),
    partition: { policy: "finish", afterSeconds: null },
  });
  books.view = {
    now: 0,
    revision: 1,
    workers: [],
    desired: {
      a: {
        slots: 2,
        config: {},
        paused: false,
        generation: 1,
        deployed: {},
        changedBy: { slots: "deploy", config: "deploy" },
      },
    },
    assignments: { a: { 0: "w", 1: "w" } },
    leases: [],
    leader: "w",
    damaged: [],
  };
  const side = new HostSide({
    books,
    runtime,
    turns: { mayMove: () => new Set(), ask: () => undefined, end: () => undefined },
    log: SILENT,
    started: () => undefined,
    rejected: () => undefined,
    lost: () => undefined,
    holds: () => undefined,
    judged: () => undefined,
    gone: () => undefined,
    ended: () => undefined,
    stirred: () => void (stirred += 1),
  });
  const claimed = (...leases: HeldLease[]) => {
    books.leases.granted(leases, monotonicMs() + LEASE_MS);
    for (const one of leases) books.slots.adopt(one, undefined, monotonicMs());
    side.act();
  };
  const lost = (...leases: HeldLease[]) => {
    books.leases.renewed(leases, leases, 0);
    side.act();
  };
  return {
    side,
    books,
    claimed,
    lost,
    hear: (message: FromHost) => hear(message),
    stirred: () => stirred,
    /** What the host was told since the last look. */
    told: () => told.splice(0).filter(({ type }) => type !== "slot-count"),
  };
}

/** Both slots run, each under the lease "1". */
function running() {
  const it = worker();
  it.claimed(lease(0, "1"), lease(1, "1"));
  it.hear({ type: "ready" });
  for (const slotId of [0, 1]) it.hear({ type: "running", slotId });
  const told = it.told();
  return { ...it, before: told };
}

const sure = (message: ToHost | undefined, slotId: number) =>
  message?.type === "leases" ? (message.until[slotId] ?? Number.NaN) - machineMs() : Number.NaN;

describe("HostSide", () => {
  it("starts no run by a lease that has ended: whoever ends it at that moment is not told to begin again, and again", () => {
    const { books, hear, told } = running();
    books.leases.renewed([lease(0, "1")], [], monotonicMs() - 1);
    hear({ type: "ended", slotId: 0, outcome: "stopped", error: null });
    expect(told().filter(({ type }) => type === "run")).toEqual([]);
    // The other one's lease holds.
    hear({ type: "ended", slotId: 1, outcome: "stopped", error: null });
    expect(told().filter(({ type }) => type === "run")).toEqual([expect.objectContaining({ slotId: 1 })]);
  });

  it("tells a host how long each lease surely holds before it tells it to run the slot, and again when it was renewed", () => {
    const { before, books, side, told } = running();
    expect(before.map(({ type }) => type)).toEqual(["leases", "run", "leases", "run"]);
    expect(sure(before[0], 0)).toBeGreaterThan(LEASE_MS - 1000);
    expect(sure(before[0], 0)).toBeLessThanOrEqual(LEASE_MS);
    side.act();
    expect(told()).toEqual([]);
    books.leases.renewed([lease(1, "1")], [], monotonicMs() + 2 * LEASE_MS);
    side.act();
    const [renewed, ...more] = told();
    expect(more).toEqual([]);
    expect(sure(renewed, 0)).toBeNaN();
    expect(sure(renewed, 1)).toBeGreaterThan(2 * LEASE_MS - 1000);
  });

  it("is calm while all runs, and says when it is so no longer", () => {
    const { side, lost, hear, stirred } = running();
    side.guard();
    expect([side.calm, stirred()]).toEqual([true, 0]);
    lost(lease(0, "1"));
    expect([side.calm, stirred()]).toEqual([false, 1]);
    hear({ type: "ended", slotId: 0, outcome: "stopped", error: null });
    expect(side.calm).toBe(false);
  });

  it("acts at once on a lease that has ended, however calm it was", () => {
    const { side, books, told } = running();
    side.guard();
    books.leases.renewed([lease(1, "1")], [], monotonicMs());
    side.guard();
    expect(told()).toContainEqual({ type: "stop", slotId: 1, reason: "lease-lost" });
  });

  it("takes a newer lease of a slot as no leave for the run that was started under an older one", () => {
    const { claimed, lost, hear, told, books } = running();
    // Frozen for longer than its lease, this worker finds it lost and claims the slot anew, in one round with the store.
    books.leases.renewed([lease(0, "1")], [lease(0, "1")], 0);
    claimed(lease(0, "2"));
    expect(told()).toEqual([
      { type: "stop", slotId: 0, reason: "lease-lost" },
      { type: "leases", until: { 0: 0 } },
    ]);
    hear({ type: "ended", slotId: 0, outcome: "stopped", error: null });
    const [leases, run] = told();
    expect(sure(leases, 0)).toBeGreaterThan(LEASE_MS - 1000);
    expect(run).toMatchObject({ type: "run", slotId: 0, token: "2" });
    lost(lease(0, "2"));
    expect(told()).toEqual([
      { type: "stop", slotId: 0, reason: "lease-lost" },
      { type: "leases", until: { 0: 0 } },
    ]);
  });
});
