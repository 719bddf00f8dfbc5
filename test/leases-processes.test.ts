// Short (`npm test`): leases on items and locks whose holders, in real processes, are busy, killed or frozen. Beat 0.3 s.
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { fleetOn } from "../src/automation/fleet.ts";
import { definePool } from "../src/contracts/pool.ts";
import { SILENT } from "../src/internal/log.ts";
import type { LockLease } from "../src/primitives/lock.ts";
import type { HolderChange } from "../src/store/pool-store.ts";
import { healFleet, type HealFleet, type Line, measured, ms } from "./support/heal-fleet.ts";
import { openPlace, PLACES, type Place } from "./support/places.ts";
import { descendants, isAlive } from "./support/processes.ts";

vi.setConfig({ testTimeout: 60_000 });

/** What a late holder can try with an item, each with a lease of its own. */
const CALLS = ["extend", "release", "retire", "cool", "report", "update"] as const;

/** Holds what it is told to, and tells what becomes of that. */
const USER = `
  import { defineContinuous } from "fleet-framework";
  import { definePool } from "fleet-framework/contracts";
  import { z } from "zod";
  import { note, order } from "./tools.ts";

  const KEYS = definePool("keys", { payload: z.string(), tags: z.object({ for: z.string() }) });
  const codeOf = async (call) => {
    try {
      await call();
      return "done";
    } catch (error) {
      return error.code ?? String(error);
    }
  };
  const aborted = (held) => Object.fromEntries(Object.entries(held).map(([as, lease]) => [as, lease.signal.aborted]));

  export default defineContinuous("user", {
    async runSlot(ctx) {
      note(ctx, "start");
      const items = {};
      const locks = {};
      const until = (ms) => { for (const end = performance.now() + ms; performance.now() < end;); };
      for await (const _ of ctx.loop({ everySeconds: 0.02 })) {
        const text = order(ctx);
        if (text === undefined) continue;
        const { what, names, ms, ...options } = JSON.parse(text);
        if (what === "hold") {
          for (const as of names) {
            items[as] = await ctx.pool(KEYS).where({ for: as }).claim(options);
            locks[as] = await ctx.lock("lock", { key: as, ...options });
            for (const [kind, lease] of [["item", items[as]], ["lock", locks[as]]])
              lease.signal.addEventListener("abort", () => note(ctx, "aborted", { kind, as }));
          }
          note(ctx, "held", {
            items: Object.fromEntries(names.map((as) => [as, { id: items[as].id, token: items[as].token }])),
            locks: Object.fromEntries(names.map((as) => [as, locks[as].token])),
          });
        }
        if (what === "busy") {
          note(ctx, "busy");
          until(ms);
          // In the same step: nothing was heard of the supervisor since.
          const calls = Object.keys(items).map(async (as) => [as, await codeOf(() => items[as].report("ok"))]);
          const extensions = Object.keys(locks).map(async (as) => [as, await codeOf(() => locks[as].extend(1))]);
          note(ctx, "after", {
            items: Object.fromEntries(await Promise.all(calls)),
            locks: Object.fromEntries(await Promise.all(extensions)),
            aborted: { items: aborted(items), locks: aborted(locks) },
          });
        }
        if (what === "late") {
          const call = {
            extend: (lease) => lease.extend(60),
            release: (lease) => lease.release(),
            retire: (lease) => lease.retire("late"),
            cool: (lease) => lease.cool(60),
            report: (lease) => lease.report("bad"),
            update: (lease) => lease.update({ payload: "late", tags: { for: "nobody" } }),
          };
          const codes = { items: {}, locks: {} };
          for (const as of names) codes.items[as] = await codeOf(() => call[as](items[as]));
          for (const as of ["extend", "release"]) codes.locks[as] = await codeOf(() => call[as](locks[as]));
          note(ctx, "tried", { ...codes, aborted: { items: aborted(items), locks: aborted(locks) } });
        }
      }
    },
  });
`;

const KEYS = definePool("keys", { payload: z.string(), tags: z.object({ for: z.string() }) });

interface Held {
  line: Line;
  items: Record<string, { id: string; token: string }>;
  locks: Record<string, string>;
}

async function started(place: Place) {
  const fleet = await healFleet(place, {
    "user.ts": USER,
    "fleet.config.ts": `export default { automations: ["./user.ts"], deploy: { user: { slots: 1 } } };`,
  });
  const mine = fleetOn(await openPlace({ url: fleet.url, namespace: fleet.store.namespace }), {
    log: SILENT,
  });
  onTestFinished(() => mine.close());
  const worker = fleet.worker("one");
  await fleet.untilLine((line) => line.what === "start");
  const pool = mine.pool(KEYS);
  /** One item and one lock under each of these names, held by the slot. */
  const hold = async (
    names: readonly string[],
    options: { holdSeconds: number; autoExtend?: boolean },
  ): Promise<Held> => {
    await pool.putMany(names.map((as) => ({ payload: as, tags: { for: as } })));
    const since = fleet.ledger().length;
    order(fleet, { what: "hold", names, ...options });
    const line = await fleet.untilLine(({ what }) => what === "held", since);
    for (const as of names) {
      expect(await pool.where({ for: as }).claim()).toBeNull();
      expect(await mine.lock("lock", { key: as })).toBeNull();
    }
    return { line, ...(line as unknown as Pick<Held, "items" | "locks">) };
  };
  /** Gets an item and a lock as soon as they are to be had, and tells after how long. */
  const take = async (as: string) => {
    const began = Date.now();
    const waiting = { waitSeconds: 20, holdSeconds: 60 };
    const [item, lock] = await Promise.all([
      pool.where({ for: as }).claim(waiting),
      mine.lock("lock", { key: as, ...waiting }),
    ]);
    if (item === null || lock === null) throw new Error(`not to be had: ${as}`);
    return { item, lock, after: Date.now() - began };
  };
  return { fleet, worker, mine, pool, hold, take };
}

function order(fleet: HealFleet, what: object): void {
  fleet.command("user/0", JSON.stringify(what));
}

function goOn(pids: readonly number[]): void {
  for (const pid of pids) if (isAlive(pid)) process.kill(pid, "SIGCONT");
}

function greater(lease: { token: string }, than: string | undefined): void {
  expect(BigInt(lease.token)).toBeGreaterThan(BigInt(than ?? "0"));
}

describe.each(PLACES)("in processes on $name", (place) => {
  test("a busy event loop costs no lease that extends itself; others end by their time", async () => {
    const { fleet, mine, pool, hold, take } = await started(place);
    const kept = await hold(["kept"], { holdSeconds: 1, autoExtend: true });
    await hold(["plain"], { holdSeconds: 1 });
    order(fleet, { what: "busy", ms: 3500 });
    const begun = await fleet.untilLine(({ what }) => what === "busy");
    const { lock } = await take("plain");
    // In all that time nobody else gets what is kept.
    while (fleet.lines("user", "after").length === 0) {
      expect(await pool.where({ for: "kept" }).claim()).toBeNull();
      expect(await mine.lock("lock", { key: "kept" })).toBeNull();
      await delay(50);
    }
    const after = await fleet.untilLine(({ what }) => what === "after");
    expect(after.at - begun.at).toBeGreaterThanOrEqual(3500);
    expect(after).toMatchObject({
      pid: begun.pid,
      items: { kept: "done", plain: "FLEET_LEASE_LOST" },
      locks: { kept: "done", plain: "FLEET_LEASE_LOST" },
      aborted: {
        items: { kept: false, plain: true },
        locks: { kept: false, plain: true },
      },
    });
    expect(await pool.get(kept.items["kept"]?.id ?? "")).toMatchObject({ uses: 1, score: 1, state: "held" });
    expect((await pool.stats())?.totals.leasesExpired).toBe(1);
    // What was read from the shared file holds for what comes by message, too.
    await delay(1500);
    expect(fleet.lines("user", "aborted").filter((line) => line["as"] === "kept")).toEqual([]);
    expect(await mine.lock("lock", { key: "kept" })).toBeNull();
    await lock.release();
  });

  test("what a child that is killed held is to be had at once", async () => {
    const { fleet, hold, take } = await started(place);
    const kept = await hold(["kept"], { holdSeconds: 3600, autoExtend: true });
    const plain = await hold(["plain"], { holdSeconds: 3600 });
    const waiting = ["kept", "plain"].map(take);
    await delay(200);
    process.kill(kept.line.pid, "SIGKILL");
    const killed = Date.now();
    const [one, two] = await Promise.all(waiting);
    measured(`${place.name}: what a killed child held is to be had after`, ms(Date.now() - killed));
    expect(Date.now() - killed).toBeLessThan(5000);
    if (one === undefined || two === undefined) throw new Error("nothing was had");
    greater(one.item, kept.items["kept"]?.token);
    greater(two.item, plain.items["plain"]?.token);
    greater(one.lock, kept.locks["kept"]);
    greater(two.lock, plain.locks["plain"]);
    // Released, not expired; and the next process of that slot can be served like anybody.
    await fleet.untilLine((line) => line.what === "start" && line.pid !== kept.line.pid);
  });

  test("what a worker that is killed held is to be had after its hold", async () => {
    const { worker, hold, take } = await started(place);
    const { line } = await hold(["kept"], { holdSeconds: 2, autoExtend: true });
    // It is kept: longer than its hold.
    await delay(2500);
    const pids = [worker.pid, ...descendants(worker.pid)];
    expect(pids).toContain(line.pid);
    for (const pid of pids) process.kill(pid, "SIGKILL");
    const { after, item, lock } = await take("kept");
    measured(`${place.name}: what a killed worker held is to be had after (hold 2 s)`, ms(after));
    expect(after).toBeGreaterThan(500);
    expect(after).toBeLessThan(4000);
    await item.release();
    await lock.release();
  });

  test("all calls of a holder that was frozen for longer than its hold fail, and change nothing", async () => {
    const { fleet, mine, pool, hold, take } = await started(place);
    const { line, items, locks } = await hold(CALLS, { holdSeconds: 1 });
    process.kill(line.pid, "SIGSTOP");
    onTestFinished(() => goOn([line.pid]));
    const taken = await Promise.all(CALLS.map(take));
    const show = () =>
      Promise.all([
        ...CALLS.map((as) => pool.get(items[as]?.id ?? "")),
        fleet.store.state.locks.show({ name: "lock" }),
      ]);
    const before = await show();
    order(fleet, { what: "late", names: CALLS });
    goOn([line.pid]);
    const tried = await fleet.untilLine(({ what }) => what === "tried");
    const all = <T>(names: readonly string[], value: T) => Object.fromEntries(names.map((as) => [as, value]));
    expect(tried).toMatchObject({
      pid: line.pid,
      items: all(CALLS, "FLEET_LEASE_LOST"),
      locks: all(["extend", "release"], "FLEET_LEASE_LOST"),
      aborted: { items: all(CALLS, true), locks: all(CALLS, true) },
    });
    expect(fleet.lines("user", "aborted")).toHaveLength(2 * CALLS.length);
    // The process looks at its clock. What had left it before it was frozen is refused by the store.
    const changes: HolderChange[] = [
      { do: "extend", holdMs: 60_000 },
      { do: "release" },
      { do: "retire", note: "late" },
      { do: "cool", ms: 60_000 },
      { do: "report", what: "bad" },
      { do: "update", payload: '"late"' },
    ];
    for (const change of changes) {
      const { id = "", token = "" } = items[change.do] ?? {};
      expect(await fleet.store.pools.change({ pool: "keys", id, token, change })).toEqual({
        outcome: "lease-lost",
      });
    }
    const late = { name: "lock", key: "extend", token: locks["extend"] ?? "" };
    expect(await fleet.store.state.locks.extend({ ...late, holdMs: 60_000 })).toEqual({
      outcome: "lease-lost",
    });
    expect(await fleet.store.state.locks.release(late)).toBe("lease-lost");
    expect(await show()).toEqual(before);
    for (const { item, lock } of taken) {
      expect(item.signal.aborted).toBe(false);
      await item.report("ok");
      await lock.extend(60);
    }
    expect(await mine.lock("lock", { key: "extend" })).toBeNull();
  });
});

// On a SQLite file a worker that is stopped in the middle of a write holds up all others.
test("a worker that was frozen as a whole has lost what extends itself (field case 18)", async () => {
  const place = PLACES.find(({ name }) => name === "Redis");
  if (place === undefined) throw new Error("there is no Redis to test on");
  const { fleet, worker, mine, hold, take } = await started(place);
  const { line, locks } = await hold(CALLS, { holdSeconds: 1, autoExtend: true });
  await delay(1500);
  const pids = [worker.pid, ...descendants(worker.pid)];
  onTestFinished(() => goOn(pids));
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  const theirs: LockLease[] = [];
  for (const { item, lock } of await Promise.all(CALLS.map(take))) {
    theirs.push(lock);
    await item.release();
    await lock.release();
  }
  order(fleet, { what: "late", names: CALLS });
  goOn(pids);
  const tried = await fleet.untilLine(({ what }) => what === "tried");
  expect(tried).toMatchObject({
    pid: line.pid,
    locks: { extend: "FLEET_LEASE_LOST", release: "FLEET_LEASE_LOST" },
  });
  expect(Object.values(tried["items"] as object)).toEqual(CALLS.map(() => "FLEET_LEASE_LOST"));
  expect(fleet.lines("user", "aborted")).toHaveLength(2 * CALLS.length);
  for (const [at, as] of CALLS.entries()) {
    greater(theirs[at] as LockLease, locks[as]);
    const next = await mine.lock("lock", { key: as });
    if (next === null) throw new Error("nobody holds it");
    greater(next, theirs[at]?.token);
  }
});
