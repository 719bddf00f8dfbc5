import { describe, expect, it } from "vitest";
import {
  isForbidden,
  mapTexts,
  referenceOf,
  referencesIn,
  unescaped,
  withoutReferences,
} from "./config-reference.ts";

describe("a reference", () => {
  it.each([
    ["env:API_KEY", { kind: "env", name: "API_KEY" }],
    ["env:_x1", { kind: "env", name: "_x1" }],
    ["file:/run/secrets/key", { kind: "file", path: "/run/secrets/key" }],
    ["file:/with blanks/ü", { kind: "file", path: "/with blanks/ü" }],
  ])("%s is one", (text, reference) => {
    expect(referenceOf(text)).toEqual(reference);
  });

  it.each([
    "env:",
    "env:1A",
    "env:a b",
    "env:a,env:b",
    " env:A",
    "see env:A",
    "ENV:A",
    "file:",
    "file:key",
    "file://host/x",
    "file:///x",
    "env::A",
    "file::/x",
    "",
  ])("%j is none", (text) => {
    expect(referenceOf(text)).toBeUndefined();
  });

  it("is written with two colons where the text itself is meant", () => {
    expect(["env::A", "file::/x", "env:::A", "a env::A"].map(unescaped)).toEqual([
      "env:A",
      "file:/x",
      "env::A",
      "a env::A",
    ]);
  });

  it("does not lead to Fleet's own variables", () => {
    const names = ["FLEET_TOKEN", "FLEET_STORE", "fleet_token", "FLEETING", "MY_FLEET_TOKEN"];
    expect(names.map((name) => isForbidden({ kind: "env", name }))).toEqual([true, true, true, false, false]);
  });

  it("is found wherever a text may stand, but not in names of fields", () => {
    const config = { a: "env:A", "b/c": [1, { d: "file:/d" }], "env:N": "plain" };
    expect(referencesIn(config).map(({ pointer, text }) => [pointer, text])).toEqual([
      ["/a", "env:A"],
      ["/b~1c/1/d", "file:/d"],
    ]);
    expect(mapTexts(config, (text) => text.length)).toEqual({ a: 5, "b/c": [1, { d: 7 }], "env:N": 5 });
  });
});

describe("what a schema finds where there are references", () => {
  const config = { key: "env:K", port: "env:P", auth: { token: "env:T", kind: "x" }, n: "no number" };
  const at = (pointer: string, message = "wrong") => ({ pointer, message });

  it("counts, but for what only the value can decide", () => {
    expect(withoutReferences([at("/key"), at("/n"), at("/keys"), at("")], config)).toEqual([
      at("/n"),
      at("/keys"),
      at(""),
    ]);
  });

  it("does not count where a form must be chosen by it", () => {
    const issues = [
      at("/auth/token"),
      at("/auth/kind", "must be equal to constant"),
      at("/auth", "must match a schema in anyOf"),
      at("/n"),
    ];
    expect(withoutReferences(issues, config)).toEqual([at("/n")]);
    expect(withoutReferences([at("/n", "must match a schema in anyOf"), at("/key/x")], config)).toHaveLength(
      2,
    );
  });
});
