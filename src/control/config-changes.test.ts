import { describe, expect, it } from "vitest";
import { isFleetError } from "../errors.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import {
  MAX_CONFIG_BYTES,
  promoteCanary,
  rollBackTo,
  setConfig,
  setOverride,
  startCanary,
  stopCanary,
} from "./config-changes.ts";

const BASE: DesiredAutomation = {
  slots: 4,
  config: { n: 1, list: [1] },
  paused: false,
  generation: 7,
  deployed: { config: '{"n":1}' },
  changedBy: { slots: "deploy", config: "deploy" },
};
const NOW = 1_900_000_000_000;
type Change = ReturnType<typeof setConfig>;
const after = (change: Change, from = BASE) => change(from, "jo", NOW) as DesiredAutomation;
const codeOf = (call: () => unknown) => {
  try {
    call();
    return undefined;
  } catch (error) {
    return isFleetError(error) ? error.code : error;
  }
};
const trial = after(startCanary({ share: 0.5 }, { patch: { n: 2 } }));

describe("a change of config", () => {
  it("patches it or takes its place, one generation on, and says who", () => {
    const patched = after(setConfig({ patch: { n: 2, more: true } }));
    expect(patched).toEqual({
      ...BASE,
      config: { n: 2, list: [1], more: true },
      generation: 8,
      changedBy: { slots: "deploy", config: "jo" },
    });
    expect(after(setConfig({ replace: [] })).config).toEqual([]);
  });

  it("is none where things stand so already, whatever the order of fields", () => {
    expect(setConfig({ patch: { n: 1 } })(BASE, "jo", NOW)).toBeUndefined();
    expect(setConfig({ patch: { gone: null } })(BASE, "jo", NOW)).toBeUndefined();
    expect(setConfig({ replace: { list: [1], n: 1 } })(BASE, "jo", NOW)).toBeUndefined();
  });

  it("is refused for what JSON cannot say, for what is too large, and for __proto__", () => {
    expect(codeOf(() => setConfig({ patch: { n: Number.NaN } }))).toBe("FLEET_PAYLOAD_INVALID");
    const large = setConfig({ patch: { text: "x".repeat(MAX_CONFIG_BYTES) } });
    expect(codeOf(() => after(large))).toBe("FLEET_CONFIG_INVALID");
    const proto = JSON.parse('{"a":[{"__proto__":{}}]}') as unknown;
    expect(codeOf(() => setConfig({ patch: proto }))).toBe("FLEET_OPTION_INVALID");
  });

  it("is refused while a canary runs, which would undo it", () => {
    expect(codeOf(() => after(setConfig({ patch: { n: 3 } }), trial))).toBe("FLEET_CONFLICT");
  });
});

describe("an override", () => {
  it("is made, changed and removed by its labels, whatever their order, and leaves the others alone", () => {
    const eu = { region: "eu", gpu: "true" };
    const one = after(setOverride(eu, { patch: { n: 5, a: 1 } }));
    expect(one).toMatchObject({
      config: BASE.config,
      overrides: [{ labels: eu, config: { n: 5, a: 1 } }],
      changedBy: { config: "deploy" },
    });
    const two = after(setOverride({ region: "us" }, { replace: { n: null } }), one);
    const three = after(setOverride({ gpu: "true", region: "eu" }, { patch: { n: null } }), two);
    expect(three.overrides?.map(({ config }) => config)).toEqual([{ a: 1 }, { n: null }]);
    const four = after(setOverride(eu, { patch: { a: null } }), three);
    expect(four).toMatchObject({ overrides: [{ labels: { region: "us" } }], generation: 11 });
    expect(setOverride({ region: "asia" }, { patch: {} })(four, "jo", NOW)).toBeUndefined();
  });

  it("needs labels", () => {
    expect(codeOf(() => setOverride({}, { patch: {} }))).toBe("FLEET_OPTION_INVALID");
  });
});

describe("a canary", () => {
  it("gets a changed config and leaves the automation's own alone", () => {
    expect(trial).toMatchObject({
      config: BASE.config,
      canary: { size: { share: 0.5 }, config: { n: 2, list: [1] }, since: NOW, generation: 8, by: "jo" },
      changedBy: { config: "deploy" },
    });
    expect(startCanary({ slots: 1 }, { patch: { n: 1 } })(BASE, "jo", NOW)).toBeUndefined();
  });

  it("is promoted to all, or dropped", () => {
    expect(after(promoteCanary, trial)).toMatchObject({
      config: { n: 2, list: [1] },
      canary: null,
      generation: 9,
      changedBy: { config: "jo" },
    });
    expect(after(stopCanary, trial)).toMatchObject({ config: BASE.config, canary: null, generation: 9 });
    expect([promoteCanary, stopCanary].map((change) => codeOf(() => after(change)))).toEqual([
      "FLEET_CONFLICT",
      "FLEET_CONFLICT",
    ]);
  });

  it.each([{ share: 0 }, { share: 1.5 }, { share: Number.NaN }, { slots: 0 }, { slots: 1.5 }])(
    "is not of %j",
    (size) => {
      expect(codeOf(() => startCanary(size, { patch: {} }))).toBe("FLEET_OPTION_INVALID");
    },
  );

  it("is dropped by a rollback, which brings overrides back too", () => {
    const overrides = [{ labels: { region: "eu" }, config: {} }];
    expect(after(rollBackTo({ config: { n: 0 }, overrides }), trial)).toMatchObject({
      config: { n: 0 },
      overrides,
      canary: null,
      generation: 9,
    });
    expect(rollBackTo({ config: BASE.config, overrides: [] })(BASE, "jo", NOW)).toBeUndefined();
  });
});
