import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { WorkerInfo } from "../protocol/status.ts";
import { openStore } from "../store/open.ts";
import type { Registry, Store } from "../store/store.ts";
import { cordon, drain, remove, uncordon } from "./operations.ts";

let store: Store;
let registry: Registry;
let now = 1_800_000_000_000;

beforeEach(async () => {
  now = 1_800_000_000_000;
  store = await openStore("sqlite::memory:", { frozenNow: () => now });
  registry = store.registry;
  await registry.register({ worker: worker("w1"), manifests: [], ttlMs: 1000 });
});
afterEach(() => store.close());

function worker(id: string, fields: Partial<WorkerInfo> = {}): WorkerInfo {
  return {
    id,
    incarnation: `${id}-1`,
    host: "h",
    pid: 1,
    version: "0.1.0",
    startedAt: now,
    capacity: 1,
    labels: {},
    automations: [],
    draining: false,
    ...fields,
  };
}
const wish = async () => (await registry.view()).workers[0]?.wish;

describe("cordon and uncordon", () => {
  it("keep who asked and since when; again they change nothing", async () => {
    expect(await cordon(registry, "w1", "anna")).toMatchObject({ outcome: "changed", worker: { id: "w1" } });
    now += 10;
    expect(await cordon(registry, "w1", "bert")).toMatchObject({ outcome: "unchanged" });
    expect(await wish()).toEqual({ cordon: { by: "anna", at: now - 10 } });
    expect(await uncordon(registry, "w1")).toMatchObject({ outcome: "changed", worker: { id: "w1" } });
    expect(await uncordon(registry, "w1")).toMatchObject({ outcome: "unchanged" });
    expect(await wish()).toBeUndefined();
  });

  it("also of one that is offline; of an unknown one they name those that there are", async () => {
    now += 1000;
    expect(await cordon(registry, "w1", "anna")).toMatchObject({ outcome: "changed" });
    expect(await cordon(registry, "w9", "anna")).toEqual({ outcome: "unknown", ids: ["w1"] });
    expect(await uncordon(registry, "w9")).toEqual({ outcome: "unknown", ids: ["w1"] });
  });
});

describe("drain", () => {
  it("is asked of the present incarnation, for 60 s unless it is said", async () => {
    await cordon(registry, "w1", "anna");
    expect(await drain(registry, "w1", { by: "anna" })).toMatchObject({ outcome: "changed" });
    expect(await wish()).toEqual({
      cordon: { by: "anna", at: now },
      drain: { by: "anna", at: now, incarnation: "w1-1", deadlineMs: 60_000 },
    });
  });

  it("is moved by another deadline, and by nothing else", async () => {
    const deadline = (deadlineSeconds?: number) =>
      drain(registry, "w1", { by: "bert", ...(deadlineSeconds === undefined ? {} : { deadlineSeconds }) });
    await drain(registry, "w1", { by: "anna", deadlineSeconds: 600 });
    now += 10;
    // Nobody who only repeats it, or waits for it, cuts it short.
    for (const same of [undefined, 600])
      expect(await deadline(same)).toMatchObject({
        outcome: "unchanged",
        worker: { wish: { drain: { by: "anna" } } },
      });
    for (const other of [5, 900]) {
      expect(await deadline(other)).toMatchObject({ outcome: "moved" });
      expect(await wish()).toEqual({
        drain: { by: "bert", at: now, incarnation: "w1-1", deadlineMs: other * 1000 },
      });
    }
  });

  it("is moved also where a signal began it, but not once its end is forced", async () => {
    const drains = (forced: boolean) =>
      registry.register({
        worker: worker("w1", {
          draining: true,
          drain: { since: now, until: now + 30_000, by: null, forced },
        }),
        manifests: [],
        ttlMs: 1000,
      });
    await drains(false);
    expect(await drain(registry, "w1", { by: "anna" })).toMatchObject({ outcome: "unchanged" });
    expect(await drain(registry, "w1", { by: "anna", deadlineSeconds: 30 })).toMatchObject({
      outcome: "unchanged",
    });
    expect(await drain(registry, "w1", { by: "anna", deadlineSeconds: 300 })).toMatchObject({
      outcome: "moved",
    });
    await drains(true);
    expect(await drain(registry, "w1", { by: "anna", deadlineSeconds: 900 })).toMatchObject({
      outcome: "unchanged",
      worker: { wish: { drain: { deadlineMs: 300_000 } } },
    });
  });

  it("changes nothing where a worker drains already, is gone or was never there", async () => {
    await registry.register({ worker: worker("w1", { draining: true }), manifests: [], ttlMs: 1000 });
    expect(await drain(registry, "w1", { by: "anna" })).toMatchObject({ outcome: "unchanged" });
    await registry.deregister({ workerId: "w1", incarnation: "w1-1" });
    expect(await drain(registry, "w1", { by: "anna" })).toMatchObject({ outcome: "offline" });
    expect(await drain(registry, "w9", { by: "anna" })).toEqual({ outcome: "unknown", ids: ["w1"] });
    expect(await wish()).toBeUndefined();
  });

  it.each([-1, 86_401, Number.NaN, "60"])("refuses a deadline of %s", async (deadlineSeconds) => {
    await expect(
      drain(registry, "w1", { by: "anna", deadlineSeconds: deadlineSeconds as number }),
    ).rejects.toMatchObject({
      code: "FLEET_OPTION_INVALID",
      message: expect.stringContaining("deadlineSeconds"),
    });
    expect(await wish()).toBeUndefined();
  });
});

it("remove forgets an offline worker and refuses a live one", async () => {
  await cordon(registry, "w1", "anna");
  expect(await remove(registry, "w1")).toEqual({ outcome: "alive" });
  now += 1000;
  expect(await remove(registry, "w1")).toEqual({ outcome: "removed" });
  expect(await remove(registry, "w1")).toEqual({ outcome: "unknown", ids: [] });
  await registry.register({ worker: worker("w1"), manifests: [], ttlMs: 1000 });
  expect(await wish()).toBeUndefined();
});
