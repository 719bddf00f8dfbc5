import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { inputJsonSchema } from "../contracts/schema/json-schema.ts";
import type { ErrorCode } from "../errors.ts";
import type { Manifest } from "../protocol/manifest.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import type { WorkerInfo } from "../protocol/status.ts";
import { openStore } from "../store/open.ts";
import type { Store } from "../store/store.ts";
import {
  configAt,
  ConfigConflict,
  configHistory,
  patchConfig,
  promoteCanary,
  readConfig,
  rollbackConfig,
  stopCanary,
} from "./config.ts";

const JO = { by: "jo" };
const Config = z.object({
  n: z.number().default(0),
  key: z.string().optional(),
  port: z.number().optional(),
});
const Newer = z.object({ n: z.number().max(10), must: z.string().optional() });
const manifest = (version: string, schema: z.ZodType): Manifest => ({
  name: "a",
  kind: "continuous",
  version,
  configSchema: inputJsonSchema("config", schema),
  output: null,
  tasks: null,
  stateSchema: null,
  uses: {},
  liveConfig: true,
});
const worker = (id: string, over: Partial<WorkerInfo> = {}): WorkerInfo => ({
  id,
  incarnation: `${id}-1`,
  host: "h",
  pid: 1,
  version: "0.1.0",
  startedAt: 1,
  capacity: 9,
  labels: {},
  automations: ["a"],
  draining: false,
  ...over,
});

let store: Store;
const desired = async () => (await store.registry.view()).desired["a"] as DesiredAutomation;
const join = (info: WorkerInfo, of: Manifest, ttlMs = 60_000) =>
  store.registry.register({ worker: info, manifests: [of], ttlMs });
const failing = async (call: Promise<unknown>, code: ErrorCode) => {
  const before = await desired();
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown as Error & { code: string },
  );
  expect(error?.code).toBe(code);
  expect(await desired()).toEqual(before);
  return error as Error & { issues?: unknown };
};

beforeEach(async () => {
  store = await openStore("sqlite::memory:");
  onTestFinished(() => store.close());
  await store.registry.putDesired({
    name: "a",
    desired: {
      slots: 4,
      config: { n: 1 },
      paused: false,
      generation: 1,
      deployed: {},
      changedBy: { slots: "deploy", config: "deploy" },
    },
    expected: 0,
    record: { by: "deploy", note: null },
  });
  await join(worker("w1"), manifest("v1", Config));
});

describe("patchConfig", () => {
  it("answers before, after, the difference, and what it was checked against", async () => {
    const changed = await patchConfig(
      store,
      "a",
      { patch: { n: 2, key: "env:KEY" } },
      { ...JO, note: "why" },
    );
    expect(changed).toMatchObject({
      changed: true,
      before: { generation: 1, config: { n: 1 } },
      desired: { generation: 2, config: { n: 2, key: "env:KEY" } },
      diff: [
        { pointer: "/key", after: "env:KEY" },
        { pointer: "/n", before: 1, after: 2 },
      ],
      checked: ["v1"],
    });
    expect(await desired()).toEqual(changed.desired);
    expect(await patchConfig(store, "a", { patch: { n: 2 } }, JO)).toMatchObject({
      changed: false,
      diff: [],
    });
    expect(await configHistory(store, "a")).toMatchObject([
      { generation: 2, by: "jo", note: "why", config: { n: 2, key: "env:KEY" } },
      { generation: 1, by: "deploy" },
    ]);
  });

  it("is heard of", async () => {
    const heard: unknown[] = [];
    const watch = store.events.subscribe({ pattern: "fleet.config.patched" }, ({ payload }) =>
      heard.push(typeof payload === "string" ? JSON.parse(payload) : payload),
    );
    await watch.ready;
    await patchConfig(store, "a", { patch: { n: 5 } }, JO);
    await expect.poll(() => heard).toEqual([{ automation: "a", generation: 2, by: "jo", note: null }]);
    await watch.close();
  });

  it("refuses what does not fit, with pointers, and writes nothing", async () => {
    const error = await failing(
      patchConfig(store, "a", { patch: { n: "x", port: true } }, JO),
      "FLEET_CONFIG_INVALID",
    );
    expect(error.message).toContain('config of "a": n: must be number; port: must be number');
    expect(error.issues).toMatchObject([{ pointer: "/n" }, { pointer: "/port" }]);
    await failing(patchConfig(store, "a", { patch: { key: "env:FLEET_TOKEN" } }, JO), "FLEET_CONFIG_INVALID");
  });

  it("leaves to the slot what only the value behind a reference can tell", async () => {
    expect((await patchConfig(store, "a", { patch: { port: "env:PORT" } }, JO)).changed).toBe(true);
  });

  it("checks against every version that a live worker has, and against no other", async () => {
    await join(worker("w2"), manifest("v2", Newer));
    const error = await failing(patchConfig(store, "a", { patch: { n: 11 } }, JO), "FLEET_CONFIG_INVALID");
    expect(error.message).toContain("(version v2, as on worker w2)");
    expect((await patchConfig(store, "a", { patch: { n: 9 } }, JO)).checked).toEqual(["v1", "v2"]);
    await store.registry.deregister({ workerId: "w2", incarnation: "w2-1" });
    expect((await patchConfig(store, "a", { patch: { n: 11 } }, JO)).checked).toEqual(["v1"]);
    await join(worker("w1", { draining: true }), manifest("v1", Config));
    await join(worker("w3"), manifest("v3", z.object({ n: z.number().max(20) })));
    expect((await patchConfig(store, "a", { patch: { n: 12 } }, JO)).checked).toEqual(["v3"]);
  });

  it("still knows the last version when no worker lives, and says when there is none", async () => {
    await store.registry.deregister({ workerId: "w1", incarnation: "w1-1" });
    await failing(patchConfig(store, "a", { patch: { n: "x" } }, JO), "FLEET_CONFIG_INVALID");
    await store.registry.pruneWorkers({ offlineMs: -1 });
    expect((await patchConfig(store, "a", { patch: { n: "x" } }, JO)).checked).toEqual([]);
  });

  it("checks overrides as merged, also for workers that are still to come", async () => {
    const eu = { region: "eu" };
    await failing(patchConfig(store, "a", { patch: { n: "x" }, labels: eu }, JO), "FLEET_CONFIG_INVALID");
    const changed = await patchConfig(store, "a", { patch: { n: 7 }, labels: eu }, JO);
    expect(changed).toMatchObject({
      desired: { config: { n: 1 }, overrides: [{ labels: eu, config: { n: 7 } }] },
      diff: [{ pointer: "/n", before: 1, after: 7 }],
      warnings: ["no live worker bears region=eu, so nobody gets this override until one does"],
    });
    // Also where it stands so already; not of one that is gone, nor of one that somebody gets.
    const again = await patchConfig(store, "a", { patch: { n: 7 }, labels: eu }, JO);
    expect(again).toMatchObject({ changed: false, warnings: changed.warnings });
    const gone = await patchConfig(store, "a", { patch: { n: null }, labels: eu }, JO);
    expect(gone).toMatchObject({ changed: true, warnings: [] });
    await join(worker("w9", { labels: { region: "eu", gpu: "true" } }), manifest("v1", Config));
    const borne = await patchConfig(store, "a", { patch: { n: 7 }, labels: eu }, JO);
    expect(borne).toMatchObject({ changed: true, warnings: [] });
    // What the others get is checked together with it.
    await failing(patchConfig(store, "a", { replace: "text" }, JO), "FLEET_CONFIG_INVALID");
  });

  it("is refused on top of another generation, and says which one is present", async () => {
    const stale = await failing(
      patchConfig(store, "a", { patch: { n: 2 } }, { ...JO, ifMatch: 9 }),
      "FLEET_CONFLICT",
    );
    expect(stale).toBeInstanceOf(ConfigConflict);
    expect(stale).toMatchObject({ present: 1, retryable: false });
    expect((await patchConfig(store, "a", { patch: { n: 2 } }, { ...JO, ifMatch: 1 })).changed).toBe(true);
  });

  it("writes over nobody: with a condition one of many succeeds, without one all do", async () => {
    const all = <T>(call: (i: number) => Promise<T>) =>
      Promise.allSettled(Array.from({ length: 20 }, (_, i) => call(i)));
    const some = await all((i) => patchConfig(store, "a", { patch: { n: 10 + i } }, { ...JO, ifMatch: 1 }));
    expect(some.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    await all((i) => patchConfig(store, "a", { patch: { [`f${i}`]: i } }, JO));
    const { generation, config } = await desired();
    expect(generation).toBe(22);
    expect(Object.keys(config as object)).toHaveLength(21);
  });

  it("does not know automations that are not there", async () => {
    await failing(patchConfig(store, "b", { patch: {} }, JO), "FLEET_NOT_FOUND");
    await failing(patchConfig(store, "constructor", { patch: {} }, JO), "FLEET_NOT_FOUND");
    await expect(readConfig(store, "ab")).rejects.toThrow("nothing was changed");
  });
});

describe("canaries and rollbacks", () => {
  it("try a config in some slots, then give it to all", async () => {
    const started = await patchConfig(store, "a", { patch: { n: 2 }, canary: { share: 0.25 } }, JO);
    expect(started).toMatchObject({
      desired: { config: { n: 1 }, canary: { config: { n: 2 } } },
      diff: [{ pointer: "/n", before: 1, after: 2 }],
    });
    await failing(
      patchConfig(store, "a", { patch: { n: "x" }, canary: { slots: 1 } }, JO),
      "FLEET_CONFIG_INVALID",
    );
    expect(await promoteCanary(store, "a", JO)).toMatchObject({
      desired: { config: { n: 2 }, canary: null },
      diff: [{ pointer: "/n", before: 1, after: 2 }],
    });
    expect((await configHistory(store, "a")).map(({ note }) => note)).toEqual([
      "canary promoted",
      "canary: 25 % of the slots",
      null,
    ]);
  });

  it("are checked also where there is no slot to try them in yet", async () => {
    const none = { ...(await desired()), slots: 0, generation: 2 };
    await store.registry.putDesired({ name: "a", desired: none, expected: 1 });
    for (const canary of [{ share: 0.5 }, { slots: 1 }])
      await failing(patchConfig(store, "a", { patch: { n: "x" }, canary }, JO), "FLEET_CONFIG_INVALID");
    await join(worker("w2"), manifest("v2", Newer));
    // Also with what the overrides make of it.
    await patchConfig(store, "a", { patch: { must: "be" }, labels: { gpu: "true" } }, JO);
    const error = await failing(
      patchConfig(store, "a", { patch: { must: 5 }, canary: { slots: 1 } }, JO),
      "FLEET_CONFIG_INVALID",
    );
    expect(error.issues).toMatchObject([{ pointer: "/must" }]);
    await patchConfig(store, "a", { patch: { must: "be" }, canary: { slots: 1 } }, JO);
  });

  it("can always be dropped, whatever they lead back to", async () => {
    await patchConfig(store, "a", { patch: { n: 2 }, canary: { slots: 1 } }, JO);
    await join(worker("w1"), manifest("v9", z.object({ n: z.literal(2) })));
    expect(await stopCanary(store, "a", JO)).toMatchObject({
      diff: [{ pointer: "/n", before: 2, after: 1 }],
    });
    await failing(stopCanary(store, "a", JO), "FLEET_CONFLICT");
  });

  it("bring an earlier config back as a new generation, also one between two changes", async () => {
    await patchConfig(store, "a", { patch: { n: 2 } }, JO);
    const scaled = { ...(await desired()), slots: 9, generation: 3 };
    await store.registry.putDesired({ name: "a", desired: scaled, expected: 2 });
    await patchConfig(store, "a", { patch: { n: 4 } }, JO);
    expect(await configAt(store, "a", 3)).toMatchObject({ generation: 2, config: { n: 2 } });
    const back = await rollbackConfig(store, "a", 3, JO);
    expect(back.desired).toMatchObject({ generation: 5, config: { n: 2 }, slots: 9 });
    expect(await configHistory(store, "a", { limit: 1 })).toMatchObject([{ note: "back to generation 2" }]);
    for (const generation of [0, 6])
      await failing(rollbackConfig(store, "a", generation, JO), "FLEET_NOT_FOUND");
    // It is checked like any other change.
    await join(worker("w1"), manifest("v9", z.object({ n: z.literal(2) })));
    await failing(rollbackConfig(store, "a", 1, JO), "FLEET_CONFIG_INVALID");
  });
});
