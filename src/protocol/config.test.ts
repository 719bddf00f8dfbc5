import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canarySlots, configDiff, effectiveConfig, isFields, mergePatch } from "./config.ts";
import type { Canary, ConfigOverride, DesiredAutomation } from "./spec.ts";

const json = fc.jsonValue({ maxDepth: 3 });
const clean = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe("mergePatch", () => {
  // The examples of RFC 7396, appendix A.
  it.each([
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [
      ["a", "b"],
      ["c", "d"],
      ["c", "d"],
    ],
    [{ a: "b" }, ["c"], ["c"]],
    [{ a: "foo" }, null, null],
    [{ a: "foo" }, "bar", "bar"],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: "b", c: null }, { a: "b" }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])("%j with %j is %j", (target, patch, result) => {
    expect(mergePatch(target, patch)).toEqual(result);
  });

  it("changes neither of its arguments, and nothing twice", () => {
    fc.assert(
      fc.property(json, json, (target, patch) => {
        const before = [clean(target), clean(patch)];
        const once = mergePatch(target, patch);
        expect([clean(target), clean(patch)]).toEqual(before);
        expect(mergePatch(once, patch)).toEqual(once);
      }),
    );
  });

  it("takes a field named __proto__ for a field", () => {
    const merged = mergePatch({}, JSON.parse('{"__proto__":{"polluted":true}}') as unknown);
    expect(Object.getPrototypeOf(merged)).toBe(Object.prototype);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe("configDiff", () => {
  it("names what is new, gone and changed; a list counts as a whole", () => {
    const before = { a: 1, b: { "c/d": [1, 2], e: null }, gone: true };
    const after = { a: 2, b: { "c/d": [1, 3], e: null }, "new~": {} };
    expect(configDiff(before, after)).toEqual([
      { pointer: "/a", before: 1, after: 2 },
      { pointer: "/b/c~1d", before: [1, 2], after: [1, 3] },
      { pointer: "/gone", before: true },
      { pointer: "/new~0", after: {} },
    ]);
    expect(configDiff([], {})).toEqual([{ pointer: "", before: [], after: {} }]);
  });

  it("is empty for equal configs only, and turns into a patch that makes one of the other", () => {
    fc.assert(
      fc.property(json, json, (a, b) => {
        expect(configDiff(a, clean(a))).toEqual([]);
        let made = clean(a);
        for (const { pointer, ...change } of configDiff(a, b)) made = put(made, pointer, change);
        expect(made).toEqual(b);
      }),
    );
  });

  function put(target: unknown, pointer: string, change: { after?: unknown }): unknown {
    if (pointer === "") return change.after;
    const [, first = "", rest = ""] = /^\/([^/]*)(.*)$/s.exec(pointer) ?? [];
    const name = first.replaceAll("~1", "/").replaceAll("~0", "~");
    const fields = new Map(Object.entries(isFields(target) ? target : {}));
    if (rest === "" && !("after" in change)) fields.delete(name);
    else fields.set(name, put(fields.get(name), rest, change));
    return Object.fromEntries(fields);
  }
});

describe("the config of a slot", () => {
  const canary = (size: Canary["size"]): Canary => ({
    size,
    config: { n: 2, on: "trial" },
    since: 0,
    generation: 1,
    by: "jo",
  });
  const desired = (over: Partial<DesiredAutomation> = {}) => ({ slots: 4, config: { n: 1 }, ...over });

  it("is the automation's own, changed by overrides in their order", () => {
    const overrides: ConfigOverride[] = [
      { labels: { region: "eu" }, config: { n: 3, eu: true } },
      { labels: { region: "eu", gpu: "true" }, config: { n: null } },
      { labels: { region: "us" }, config: { n: 9 } },
    ];
    const on = (labels: Record<string, string>) => effectiveConfig(desired({ overrides }), { labels });
    expect(on({})).toEqual({ n: 1 });
    expect(on({ region: "eu" })).toEqual({ n: 3, eu: true });
    expect(on({ region: "eu", gpu: "true" })).toEqual({ eu: true });
    expect(on({ region: "asia", constructor: "x" })).toEqual({ n: 1 });
  });

  it("is the one on trial in the first slots, with the overrides on top", () => {
    const overrides = [{ labels: { a: "b" }, config: { n: 7 } }];
    const state = desired({ overrides, canary: canary({ slots: 2 }) });
    const of = (slotId: number, labels = {}) => effectiveConfig(state, { labels, slotId });
    expect([0, 1, 2, 3].map((slotId) => of(slotId))).toEqual([
      { n: 2, on: "trial" },
      { n: 2, on: "trial" },
      { n: 1 },
      { n: 1 },
    ]);
    expect(of(0, { a: "b" })).toEqual({ n: 7, on: "trial" });
    expect(effectiveConfig(state, { labels: {} })).toEqual({ n: 1 });
  });

  it.each([
    [4, { share: 0.2 }, 1],
    [10, { share: 0.2 }, 2],
    [30, { share: 0.1 }, 3],
    [100, { share: 0.07 }, 7],
    [3, { share: 1 }, 3],
    [0, { share: 0.5 }, 0],
    [5, { slots: 2 }, 2],
    [1, { slots: 2 }, 1],
  ])("of %i slots, %j are %i", (slots, size, count) => {
    expect(canarySlots({ slots, canary: canary(size) })).toBe(count);
  });

  it("has no slot on trial without a canary", () => {
    expect([canarySlots({ slots: 4 }), canarySlots({ slots: 4, canary: null })]).toEqual([0, 0]);
  });
});
