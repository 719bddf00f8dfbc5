import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineBatch } from "../automation/definition-batch.ts";
import { manifestOf } from "../automation/manifest.ts";
import { FleetError } from "../errors.ts";
import { SILENT } from "../internal/log.ts";
import type { Program } from "../protocol/program.ts";
import { desired, register, worker } from "../store/conformance/workers.ts";
import { openStore } from "../store/open.ts";
import type { FleetView } from "../store/store.ts";
import type { Books } from "./books.ts";
import { asKnown, behind, hasLost, Recovery } from "./recovery.ts";

const KNOWN = { revision: 500, now: 10_000, desired: { a: desired(1), b: desired(7) } };
const view = (revision: number, wanted: Record<string, ReturnType<typeof desired>> = KNOWN.desired) => ({
  revision,
  desired: wanted,
  damaged: [],
});

test("a store that went on has lost nothing, however long this worker was away", () => {
  expect(hasLost(view(500), KNOWN)).toBe(false);
  expect(hasLost(view(9999, { a: desired(3), b: desired(7), c: desired(1) }), KNOWN)).toBe(false);
});

test("one that began anew has, though others have written the same again; so has one that went back", () => {
  expect(hasLost(view(10_000), KNOWN)).toBe(true);
  expect(hasLost(view(0, {}), KNOWN)).toBe(true);
  expect(hasLost(view(499), KNOWN)).toBe(true);
  expect(hasLost(view(700, { a: desired(1), b: desired(6) }), KNOWN)).toBe(true);
  // Whoever knows nothing cannot tell.
  expect(hasLost(view(500), undefined)).toBe(true);
});

test("what is not there, or older, is behind; what cannot be read is left alone", () => {
  const here = view(1, { a: desired(1), toString: desired(1) });
  expect(behind(here, KNOWN)).toEqual([["b", desired(7), 0]]);
  expect(behind(view(1, { a: desired(2), b: desired(3) }), KNOWN)).toEqual([["b", desired(7), 3]]);
  const damaged = [{ kind: "desired state", name: "b", where: "", reason: "", remedy: "" } as const];
  expect(behind({ ...here, damaged: [...damaged] }, KNOWN)).toEqual([]);
});

test("what is behind and cannot be put back is taken as it was known, and its slots stay where nobody has placed them", () => {
  const base = { workers: [], leases: [], damaged: [], leader: null } as unknown as FleetView;
  const known = {
    ...base,
    desired: { a: desired(3), b: desired(7), c: desired(2) },
    assignments: { a: { 0: "w1" }, b: { 0: "w1" }, c: { 0: "w1" } },
  };
  const read = {
    ...base,
    revision: 9,
    desired: { a: desired(4), b: desired(6) },
    assignments: { a: { 0: "w2" } },
  };
  const taken = asKnown(read, known);
  expect(taken.revision).toBe(9);
  expect({ ...taken.desired }).toEqual({ a: desired(4), b: desired(7), c: desired(2) });
  // What is there in an older form is placed, by that.
  expect({ ...taken.assignments }).toEqual({ a: { 0: "w2" }, c: { 0: "w1" } });
  expect(asKnown(read, undefined)).toBe(read);
});

const REPORTS = defineBatch("reports", {
  tasks: z.object({}),
  schedules: { nightly: { everySeconds: 3600, payload: {} } },
  runOne: async () => undefined,
});

type Refusal = (call: string, name: string | undefined) => FleetError | undefined;

/** A fleet of which worker "w" knows desired state of `a` and `b`, and that `c1` is cordoned; then its store is empty. */
async function afterLoss(refuse: Refusal) {
  const store = await openStore("sqlite::memory:");
  onTestFinished(() => store.close());
  for (const id of ["w", "c1", "c2"]) await register(store.registry, worker(id));
  for (const name of ["a", "b"]) await store.registry.putDesired({ name, desired: desired(1), expected: 0 });
  const cordon = { by: "anna", at: 1 };
  await store.registry.setWish({ workerId: "c1", kind: "cordon", wish: cordon });
  const registry = new Proxy(store.registry, {
    get: (target, name) => (args?: { name?: string }) => {
      const error = refuse(String(name), args?.name);
      if (error !== undefined) return Promise.reject(error);
      return (Reflect.get(target, name) as (given: unknown) => unknown).call(target, args);
    },
  });
  const seen = new Proxy(store, {
    get: (target, name) => (name === "registry" ? registry : (Reflect.get(target, name) as unknown)),
  });
  const automation = {
    manifest: manifestOf(REPORTS, "1"),
    module: "",
    source: "",
    isolate: "automation",
  } as const;
  const program: Program = { automations: [automation], deploy: {} };
  const books = { view: await store.registry.view(), program, member: { id: "w" } };
  const told = { times: 0 };
  const recovery = new Recovery({
    store: seen,
    books: books as unknown as Books,
    log: SILENT,
    emptied: async () => void (told.times += 1),
  });
  const lose = async () => {
    await store.wipe();
    for (const id of ["w", "c1", "c2"]) await register(store.registry, worker(id));
  };
  const cordoned = async () => {
    const { workers } = await store.registry.view();
    return workers.filter(({ wish }) => wish?.cordon !== undefined).map(({ id }) => id);
  };
  const wanted = async () => Object.keys((await store.registry.view()).desired).toSorted();
  const schedules = async () =>
    (await store.queues.schedules({ queue: "reports" })).schedules.map(({ spec }) => spec.id);
  await lose();
  await recovery.begin();
  return { store, recovery, books, told, cordon, lose, cordoned, wanted, schedules };
}

const denied = () => new FleetError("FLEET_STORE_FAILED", "WRONGTYPE", { retryable: false });

test("while one thing stays refused, what is there again and was changed since is left as it is", async () => {
  const fleet = await afterLoss((call, name) =>
    call === "putDesired" && name === "b" ? denied() : undefined,
  );
  await expect(fleet.recovery.finish()).rejects.toThrow("WRONGTYPE");
  expect([await fleet.cordoned(), await fleet.wanted(), await fleet.schedules()]).toEqual([
    ["c1"],
    ["a", "reports"],
    ["nightly"],
  ]);
  await fleet.store.queues.removeSchedule({ queue: "reports", id: "nightly" });
  await fleet.store.registry.setWish({ workerId: "c1", kind: "cordon", wish: null });
  await expect(fleet.recovery.finish()).rejects.toThrow("WRONGTYPE");
  expect([await fleet.cordoned(), await fleet.schedules(), fleet.told.times]).toEqual([[], [], 1]);
  expect(fleet.recovery.pending).toBe(true);
});

test("nothing is wanted before what is to be cordoned is", async () => {
  let refuses = true;
  const fleet = await afterLoss((call) =>
    refuses && call === "setWish"
      ? new FleetError("FLEET_STORE_BUSY", "busy", { retryable: true })
      : undefined,
  );
  await expect(fleet.recovery.finish()).rejects.toThrow("busy");
  expect([await fleet.cordoned(), await fleet.wanted()]).toEqual([[], []]);
  refuses = false;
  await fleet.recovery.finish();
  expect([await fleet.cordoned(), await fleet.wanted()]).toEqual([["c1"], ["a", "b", "reports"]]);
  expect(fleet.recovery.pending).toBe(false);
});

test("one that is forgotten, or whose store is lost again, meanwhile goes by what it has read last", async () => {
  const fleet = await afterLoss((call, name) =>
    call === "putDesired" && name === "b" ? denied() : undefined,
  );
  const { store, recovery, books } = fleet;
  await expect(recovery.finish()).rejects.toThrow("WRONGTYPE");
  await store.registry.setWish({ workerId: "c1", kind: "cordon", wish: null });
  await store.registry.setWish({ workerId: "c2", kind: "cordon", wish: fleet.cordon });
  books.view = asKnown(await store.registry.view(), books.view);
  // Forgotten only.
  await recovery.begin();
  await expect(recovery.finish()).rejects.toThrow("WRONGTYPE");
  expect(await fleet.cordoned()).toEqual(["c2"]);
  await fleet.lose();
  await recovery.begin();
  await expect(recovery.finish()).rejects.toThrow("WRONGTYPE");
  expect(await fleet.cordoned()).toEqual(["c2"]);
});
