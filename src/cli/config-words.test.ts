import { describe, expect, it } from "vitest";
import type { DesiredAutomation } from "../protocol/spec.ts";
import { canarySize, changeWords, configText, diffLines, historyText, patchOf } from "./config-words.ts";

const BASE: DesiredAutomation = {
  slots: 10,
  config: { n: 1 },
  paused: false,
  generation: 4,
  deployed: {},
  changedBy: { slots: "deploy", config: "jo" },
};

describe("patchOf", () => {
  it.each([
    [["n=2"], { n: 2 }],
    [
      ["who=me", "on=true", "none=null", 'text="5"', "empty="],
      { who: "me", on: true, none: null, text: "5", empty: "" },
    ],
    [["a.b=1", "a.c=x=y", 'a.d={"e":[1]}'], { a: { b: 1, c: "x=y", d: { e: [1] } } }],
    [["a.b=1", "a=null"], { a: null }],
    [["a.b=1", "a.b=2"], { a: { b: 2 } }],
    [["dotted\\.name=1", "__proto__=1"], JSON.parse('{"dotted.name":1,"__proto__":1}')],
    [["key=env:API_KEY"], { key: "env:API_KEY" }],
  ])("%j", (pairs, patch) => {
    expect(patchOf(pairs)).toEqual(patch);
  });

  it.each(["n", "=1", "a..b=1", ".a=1"])("refuses %j", (pair) => {
    expect(() => patchOf([pair])).toThrow("write name=value");
  });
});

describe("canarySize", () => {
  it.each([
    ["0.2", { share: 0.2 }],
    [".5", { share: 0.5 }],
    ["20%", { share: 0.2 }],
    ["100%", { share: 1 }],
    ["3", { slots: 3 }],
    ["1", { slots: 1 }],
    ["0", undefined],
    ["1.5", undefined],
    ["101%", undefined],
    ["all", undefined],
  ])("%s", (text, size) => {
    expect(canarySize(text)).toEqual(size);
  });
});

describe("what is printed", () => {
  const desired = { ...BASE, config: { n: 2 }, generation: 5 };
  const diff = [{ pointer: "/n", before: 1, after: 2 }];
  const words = (over: object) =>
    changeWords("a", { changed: true, before: BASE, desired, diff, checked: ["v1"], warnings: [], ...over });
  const canary = { size: { share: 0.2 }, config: { n: 2 }, since: 0, generation: 5, by: "jo" };

  it("says what was changed and what follows", () => {
    expect(words({})).toBe('The config of "a" is changed (generation 5).\n  ~ /n: 1 → 2');
    expect(words({ changed: false })).toBe('The config of "a" stands so already; nothing was changed.');
    expect(words({ checked: [] })).toContain("was not checked");
    expect(words({ warnings: ["nobody bears it"] })).toContain("\nWarning: nobody bears it.");
    expect(words({ changed: false, warnings: ["nobody bears it"] })).toContain("\nWarning: nobody bears it.");
    expect(words({ desired: { ...desired, paused: true } })).toContain("when they are resumed");
    expect(words({ desired: { ...BASE, generation: 5, canary } })).toContain(
      'Slots 0 to 1 are to try it; "fleet config canary promote a" gives it to all',
    );
    expect(words({ before: { ...BASE, canary } })).toContain("No canary runs any more.");
  });

  it("shows differences, overrides and what is on trial", () => {
    expect(
      diffLines([
        { pointer: "/a", before: 1 },
        { pointer: "", after: {} },
      ]),
    ).toEqual(["- /a: 1", "+ (all): {}"]);
    const overrides = [{ labels: { region: "eu", gpu: "true" }, config: { n: 9 } }];
    const text = configText("a", { ...BASE, overrides, canary });
    expect(text).toContain('"a", generation 4, set by jo\n{\n  "n": 1\n}\n');
    expect(text).toContain("On workers with region=eu,gpu=true:");
    expect(text).toContain(
      "On trial in 20 % of the slots (2 of 10), since generation 5, by jo:\n  ~ /n: 1 → 2",
    );
  });

  it("shows the history, newest first, with what each change changed", () => {
    const version = (generation: number, config: unknown) => ({
      generation,
      config,
      overrides: [],
      canary: null,
      by: "jo",
      at: 1000 * generation,
      note: generation === 2 ? "why" : null,
    });
    const overridden = { ...version(3, { n: 1 }), overrides: [{ labels: { a: "b" }, config: { n: 5 } }] };
    const text = historyText([overridden, version(2, { n: 1 }), version(1, { n: 0 })], 4000);
    expect(text.split("\n").map((line) => line.trim())).toEqual([
      "GENERATION  AGE  BY  CHANGES       NOTE",
      "3  1 s  jo  /(overrides)",
      "2  2 s  jo  /n            why",
      "1  3 s  jo  -",
      "",
    ]);
    expect(historyText([], 0)).toBe("No change of its config is kept.\n");
  });
});
