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
      overrides: [],
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
      overrides: [],
    });
  });

  it("names whoever had set the part that a changed entry replaces", () => {
    const current = { ...fresh({ slots: 2 }), slots: 9, changedBy: { slots: "api:jo", config: "deploy" } };
    expect(seed("a", current, { slots: 3 })).toMatchObject({
      desired: { slots: 3, changedBy: { slots: "deploy" }, generation: 2 },
      overrides: [{ part: "slots", by: "api:jo" }],
    });
    // Somebody had set the very value that is deployed now: nothing is lost, so nobody is warned.
    expect(seed("a", { ...current, slots: 3 }, { slots: 3 })?.overrides).toEqual([]);
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
});
