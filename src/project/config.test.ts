import { expect, test } from "vitest";
import { configOf, defineConfig } from "./config.ts";

test("keeps what was given, frozen", () => {
  const given = {
    automations: ["./a/*.ts"],
    store: "redis://localhost",
    namespace: "prod",
    deploy: { "url-pinger": { slots: 2, config: { urls: [] } } },
  };
  const config = defineConfig(given);
  expect(config).toEqual(given);
  expect(Object.isFrozen(config)).toBe(true);
  expect(configOf(config)).toBe(config);
  expect(configOf({ ...given })).toEqual(given);
});

test("a store left undefined, as from an unset variable, means the default", () => {
  expect(defineConfig({ automations: ["a.ts"], store: undefined }).store).toBeUndefined();
});

function overriding(overrides: unknown) {
  return { automations: [], deploy: { a: { overrides } } };
}

test("overrides of a deploy entry are kept in their order, labels as texts", () => {
  const overrides = [
    { labels: { region: "eu", gpu: true }, config: { rate: null } },
    { labels: { region: "us" }, config: { rate: 2 } },
  ];
  const { deploy } = defineConfig(overriding(overrides) as never);
  expect(deploy?.["a"]?.overrides).toEqual([
    { labels: { region: "eu", gpu: "true" }, config: { rate: null } },
    overrides[1],
  ]);
});

test.each([
  [{}, "FLEET_CONFIG_INVALID", "automations is missing"],
  [{ automations: "a.ts" }, "FLEET_OPTION_INVALID", "automations must be an array"],
  [{ automation: ["a.ts"] }, "FLEET_OPTION_INVALID", 'did you mean "automations"?'],
  [{ automations: [], plugins: true }, "FLEET_OPTION_INVALID", "plugins must be false, or an array"],
  [{ automations: [], plugins: ["./a.js"] }, "FLEET_OPTION_INVALID", "plugins must be false, or an array"],
  [{ automations: [], namespace: "A B" }, "FLEET_NAME_INVALID", "namespace"],
  [{ automations: [], deploy: { "Bad/Name": {} } }, "FLEET_NAME_INVALID", "Bad/Name"],
  [
    { automations: [], deploy: { a: { slots: -1 } } },
    "FLEET_OPTION_INVALID",
    "deploy.a: slots must be at least 0",
  ],
  [{ automations: [], deploy: { a: { slot: 1 } } }, "FLEET_OPTION_INVALID", 'did you mean "slots"?'],
  [{ automations: [], deploy: { a: { config: { n: Number.NaN } } } }, "FLEET_PAYLOAD_INVALID", "NaN"],
  [overriding({}), "FLEET_OPTION_INVALID", "deploy.a: overrides must be a list"],
  [overriding([{ config: {} }]), "FLEET_OPTION_INVALID", "deploy.a: overrides[0]: labels must be labels"],
  [overriding([{ labels: {}, config: {} }]), "FLEET_OPTION_INVALID", "labels must be at least one label"],
  [overriding([{ labels: { a: 1 } }]), "FLEET_OPTION_INVALID", "deploy.a: overrides[0]: config must be"],
  [overriding([{ label: { a: 1 } }]), "FLEET_OPTION_INVALID", 'did you mean "labels"?'],
  [
    overriding([
      { labels: { a: 1 }, config: {} },
      { labels: { a: "1" }, config: { n: 2 } },
    ]),
    "FLEET_OPTION_INVALID",
    "deploy.a: overrides[1]: labels must be labels that no other",
  ],
  [{ automations: [], partition: "halt" }, "FLEET_OPTION_INVALID", "partition must be"],
  [{ automations: [], partition: "exit", partitionSeconds: 0 }, "FLEET_OPTION_INVALID", "partitionSeconds"],
])("%j is refused", (config, code, message) => {
  expect(() => defineConfig(config as never)).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(message) }),
  );
});

test.each([[undefined], [null], [5], [() => ({})]])("a default export of %s is refused", (exported) => {
  expect(() => configOf(exported)).toThrow(expect.objectContaining({ code: "FLEET_CONFIG_INVALID" }));
});
