import { describe, expect, it, vi } from "vitest";
import { SILENT } from "../internal/log.ts";
import type { Program } from "../protocol/program.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import { openStore } from "../store/open.ts";
import { applyDeploy, seed } from "./deploy.ts";

const fresh = (entry: Parameters<typeof seed>[2]) =>
  seed("a", undefined, entry)?.desired as DesiredAutomation;

describe("seed", () => {
  it("starts with one slot and an empty config where nothing is said", () => {
    expect(seed("a", undefined, {})).toEqual({
      desired: {
        slots: 1,
        config: {},
        paused: false,
        generation: 1,
        deployed: {},
        changedBy: { slots: "deploy", config: "deploy" },
      },
      replaced: [],
    });
  });

  it("changes nothing for an entry that was applied already, whatever others set meanwhile", () => {
    const entry = { slots: 2, config: { b: 1, a: 2 } };
    const current = fresh(entry);
    expect(seed("a", current, { slots: 2, config: { a: 2, b: 1 } })).toBeUndefined();
    const scaled = { ...current, slots: 9, generation: 5, changedBy: { slots: "cli", config: "deploy" } };
    expect(seed("a", scaled, entry)).toBeUndefined();
  });

  it("makes a new generation of the part that changed, and leaves the other alone", () => {
    const current = { ...fresh({ slots: 2, config: { a: 1 } }), slots: 9, generation: 5 };
    const seeded = seed(
      "a",
      { ...current, changedBy: { slots: "cli", config: "deploy" } },
      { slots: 2, config: { a: 2 } },
    );
    expect(seeded).toMatchObject({
      desired: { slots: 9, config: { a: 2 }, generation: 6, changedBy: { slots: "cli", config: "deploy" } },
      replaced: [],
    });
  });

  it("names whoever had set the part that a changed entry replaces", () => {
    const current = { ...fresh({ slots: 2 }), slots: 9, changedBy: { slots: "api:jo", config: "deploy" } };
    expect(seed("a", current, { slots: 3 })).toMatchObject({
      desired: { slots: 3, changedBy: { slots: "deploy" }, generation: 2 },
      replaced: [{ part: "slots", by: "api:jo" }],
    });
    // Somebody had set the very value that is deployed now: nothing is lost, so nobody is warned.
    expect(seed("a", { ...current, slots: 3 }, { slots: 3 })?.replaced).toEqual([]);
  });

  it("treats overrides as a part like the others, as a whole and in their order", () => {
    const eu = { labels: { region: "eu" }, config: { rate: 2 } };
    const gpu = { labels: { gpu: "true" }, config: { rate: null } };
    const current = fresh({ overrides: [eu] });
    expect(current).toMatchObject({ overrides: [eu], changedBy: { overrides: "deploy" } });
    expect(seed("a", current, { overrides: [eu] })).toBeUndefined();
    // Whoever has changed them keeps what they set until the entry changes.
    const patched = { ...current, overrides: [gpu], changedBy: { ...current.changedBy, overrides: "cli" } };
    expect(seed("a", patched, { overrides: [eu] })).toBeUndefined();
    expect(seed("a", patched, {})).toBeUndefined();
    expect(seed("a", patched, { overrides: [gpu, eu] })).toMatchObject({
      desired: { overrides: [gpu, eu], generation: 2, changedBy: { overrides: "deploy", config: "deploy" } },
      replaced: [{ part: "overrides", by: "cli" }],
    });
    expect(seed("a", current, { overrides: [] })).toMatchObject({ desired: { overrides: [] }, replaced: [] });
    // Kept by a version that did not note who had set them.
    const old = { ...fresh({}), overrides: [gpu] };
    expect(seed("a", old, { overrides: [eu] })?.replaced).toEqual([{ part: "overrides", by: "somebody" }]);
  });

  it("keeps a pause", () => {
    expect(seed("a", { ...fresh({ slots: 2 }), paused: true }, { slots: 3 })?.desired.paused).toBe(true);
  });

  it("leaves a part alone that the entry does not name any more", () => {
    expect(seed("a", fresh({ slots: 2, config: { a: 1 } }), {})).toBeUndefined();
  });

  it.each([-1, 1.5, 10_001, Number.NaN])("refuses %d slots", (slots) => {
    expect(() => seed("a", undefined, { slots })).toThrow("deploy: a: slots must be");
  });
});

describe("applyDeploy", () => {
  const program = (deploy: Program["deploy"]): Program => ({
    automations: [
      {
        manifest: {
          name: "a",
          kind: "continuous",
          version: "1",
          configSchema: null,
          output: null,
          tasks: null,
          stateSchema: null,
          uses: {},
          liveConfig: false,
        },
        module: "",
        source: "",
        isolate: "automation",
      },
    ],
    deploy,
  });

  it("stores, stores again what changed, warns whom it overrides, and survives racing writers", async () => {
    const store = await openStore("sqlite::memory:");
    const warn = vi.fn<(message: string) => void>();
    const log = { ...SILENT, warn };
    await applyDeploy(store.registry, program({ a: { slots: 2 } }), log);
    await applyDeploy(store.registry, program({ a: { slots: 2 } }), log);
    const first = (await store.registry.view()).desired.a as DesiredAutomation;
    expect(first).toMatchObject({ slots: 2, generation: 1 });
    const scaled = { ...first, slots: 7, generation: 2, changedBy: { ...first.changedBy, slots: "cli" } };
    expect(await store.registry.putDesired({ name: "a", desired: scaled, expected: 1 })).toBe("stored");
    await applyDeploy(store.registry, program({ a: { slots: 2 } }), log);
    expect((await store.registry.view()).desired.a?.slots).toBe(7);
    expect(warn).not.toHaveBeenCalled();
    await Promise.all([3, 3, 3].map((slots) => applyDeploy(store.registry, program({ a: { slots } }), log)));
    expect((await store.registry.view()).desired.a).toMatchObject({ slots: 3, generation: 3 });
    expect(warn).toHaveBeenCalledOnce();
    expect(warn).toHaveBeenCalledWith('deploy changed slots of "a", which cli had set meanwhile', {
      generation: 3,
    });
    await store.close();
  });

  it("keeps what it changes of config in the history, and changes nothing for a config that does not fit", async () => {
    const store = await openStore("sqlite::memory:");
    const error = vi.fn<(message: string) => void>();
    const log = { ...SILENT, error };
    const schema = { type: "object", properties: { n: { type: "number" } } };
    const typed = (deploy: Program["deploy"]): Program => {
      const { automations } = program(deploy);
      return {
        deploy,
        automations: automations.map((one) => ({
          ...one,
          manifest: { ...one.manifest, configSchema: schema },
        })),
      };
    };
    const told = vi.fn<(change: object) => void>();
    const apply = (a: { slots?: number; config?: unknown }) =>
      applyDeploy(store.registry, typed({ a }), log, told);
    const history = async () =>
      (await store.registry.configHistory({ name: "a", limit: 9 })).map(({ generation, config, by }) => [
        generation,
        config,
        by,
      ]);
    await apply({ config: { n: 1 } });
    await apply({ config: { n: 2 } });
    await apply({ slots: 3, config: { n: 2 } });
    const before = (await store.registry.view()).desired.a;
    expect(before).toMatchObject({ generation: 3, slots: 3 });
    await apply({ slots: 9, config: { n: "three" } });
    expect((await store.registry.view()).desired.a).toEqual(before);
    expect(error.mock.calls.map(([message]) => message)).toEqual([
      'deploy: config of "a": n: must be number. Nothing was changed',
    ]);
    expect(await history()).toEqual([
      [2, { n: 2 }, "deploy"],
      [1, { n: 1 }, "deploy"],
    ]);
    expect(told.mock.calls.map(([change]) => change)).toMatchObject([{ generation: 1 }, { generation: 2 }]);
    // A reference is left to the slots, and a canary that runs is dropped.
    const canary = { size: { slots: 1 }, config: { n: 5 }, since: 1, generation: 4, by: "jo" };
    const trial = { ...(before as DesiredAutomation), canary, generation: 4 };
    await store.registry.putDesired({ name: "a", desired: trial, expected: 3 });
    await apply({ config: { n: "env:N" } });
    expect((await store.registry.view()).desired.a).toMatchObject({ config: { n: "env:N" }, canary: null });
    expect(await store.registry.configHistory({ name: "a", limit: 1 })).toMatchObject([
      { generation: 5, note: "the canary was dropped" },
    ]);
    await store.close();
  });
});
