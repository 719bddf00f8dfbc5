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

test.each([
  [{}, "FLEET_CONFIG_INVALID", "automations is missing"],
  [{ automations: "a.ts" }, "FLEET_OPTION_INVALID", "automations must be an array"],
  [{ automation: ["a.ts"] }, "FLEET_OPTION_INVALID", 'did you mean "automations"?'],
  [{ automations: [], plugins: false }, "FLEET_NOT_AVAILABLE", "plugins"],
  [{ automations: [], namespace: "A B" }, "FLEET_NAME_INVALID", "namespace"],
  [{ automations: [], deploy: { "Bad/Name": {} } }, "FLEET_NAME_INVALID", "Bad/Name"],
  [
    { automations: [], deploy: { a: { slots: -1 } } },
    "FLEET_OPTION_INVALID",
    "deploy.a: slots must be at least 0",
  ],
  [{ automations: [], deploy: { a: { slot: 1 } } }, "FLEET_OPTION_INVALID", 'did you mean "slots"?'],
  [{ automations: [], deploy: { a: { config: { n: Number.NaN } } } }, "FLEET_PAYLOAD_INVALID", "NaN"],
])("%j is refused", (config, code, message) => {
  expect(() => defineConfig(config as never)).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(message) }),
  );
});

test.each([[undefined], [null], [5], [() => ({})]])("a default export of %s is refused", (exported) => {
  expect(() => configOf(exported)).toThrow(expect.objectContaining({ code: "FLEET_CONFIG_INVALID" }));
});
