import { describe, expect, it } from "vitest";
import { checkName, checkNamespace, checkTopic, checkTopicPattern, isName } from "./name.ts";

const ODD = [
  "",
  "A",
  "a b",
  "a/b",
  "a:b",
  "a#b",
  "a+b",
  "a%2fb",
  "-a",
  ".a",
  "_a",
  "a\n",
  "a\0",
  "ä",
  "🙂",
  "a".repeat(129),
  "a*",
  "{a}",
  "a?b",
  "a\\b",
  "a'b",
  'a"b',
  "a;b",
  "a$b",
  " a",
  "a ",
  "../a",
  "a,b",
  "a=b",
  "a@b",
];

describe("names", () => {
  it.each(["a", "0", "url-pinger", "a.b_c-d", "9lives", "a".repeat(128)])("takes %j", (name) => {
    expect(checkName("stream", name)).toBe(name);
    expect(isName(name)).toBe(true);
  });

  it.each([...ODD, undefined, null, 1, {}])("refuses %j", (name) => {
    expect(isName(name)).toBe(false);
    expect(() => checkName("stream", name)).toThrowError(
      expect.objectContaining({ code: "FLEET_NAME_INVALID" }),
    );
    expect(() => checkName("stream", name)).toThrow(
      /^stream .* is not a valid name: use 1 to 128 characters/s,
    );
  });

  it("does not repeat a giant name as a whole", () => {
    expect(() => checkName("stream", "X".repeat(1e6))).toThrow(/^.{1,400}$/s);
  });

  it("takes a namespace, also none, and nothing that could reach into another's keys", () => {
    expect(checkNamespace("")).toBe("");
    expect(checkNamespace("prod")).toBe("prod");
    for (const bad of ["prod:", "a:b", "{x}", "*", "A", "a".repeat(65), null])
      expect(() => checkNamespace(bad)).toThrow(/namespace/);
  });

  it.each(["stream", "queue", "pool", "lock", "counter", "limit", "event"])(
    "keeps the namespace %s for the keys of that primitive, whatever the store is",
    (name) => {
      expect(() => checkNamespace(name)).toThrow(/reserved/);
      expect(checkNamespace(`${name}s`)).toBe(`${name}s`);
    },
  );

  it("keeps topics under fleet. for the framework", () => {
    expect(checkTopic("harvest.started")).toBe("harvest.started");
    expect(checkTopic("fleets.x")).toBe("fleets.x");
    expect(() => checkTopic("fleet.x")).toThrow(/reserved/);
    expect(checkTopic("fleet.x", { own: true })).toBe("fleet.x");
    expect(() => checkTopic("a.*")).toThrow(/not a valid name/);
  });

  it("takes topic patterns", () => {
    for (const good of ["*", "a.*", "fleet.slot.*", "a.*.b", "a"]) expect(checkTopicPattern(good)).toBe(good);
    for (const bad of ["", "a?", "[a]", "A*", ".*", 5])
      expect(() => checkTopicPattern(bad)).toThrow(/pattern/);
  });
});
