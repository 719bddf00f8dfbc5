import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { clockArgument, parseHeader, readLua, SCRIPT_NAMES } from "./scripts.ts";

const PRELUDES = [
  "clock",
  "limit",
  "lock",
  "pool",
  "pool-ends",
  "pool-find",
  "pool-head",
  "pool-item",
  "pool-line",
  "pool-pick",
  "pool-record",
  "pool-settle",
  "queue",
  "queue-ask",
  "queue-by-hand",
  "queue-ends",
  "queue-forget",
  "queue-hand",
  "queue-lanes",
  "queue-record",
  "queue-refresh",
  "queue-rivals",
  "queue-take",
  "queue-wait",
  "queue-write",
  "revision",
  "token",
];
/** `now_us` of `local function now_us(`, `q.open` of `function q.open(`. */
function functionsOf(code: string): string[] {
  return [...code.matchAll(/^(?:local )?function ([\w.]+)/gm)].map((match) => match[1] as string);
}
/** Functions that each prelude offers. */
const OFFERED = new Map(PRELUDES.map((name) => [name, functionsOf(readLua(name))]));
const files = readdirSync(new URL("./lua/", import.meta.url)).map((file) => file.replace(".lua", ""));

/** Code without comments and texts. */
const codeOf = (text: string) => text.replaceAll(/"[^"\n]*"|'[^'\n]*'/g, '""').replaceAll(/--.*$/gm, "");

/** The indexes written out as `KEYS[3]`, in order and once each. */
function indexes(code: string, array: string): number[] {
  const found = [...code.matchAll(new RegExp(`${array}\\[(\\d+)\\]`, "g"))].map((match) => Number(match[1]));
  return [...new Set(found)].toSorted((a, b) => a - b);
}

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1);

it("every file is a known script or prelude", () => {
  expect(files.toSorted()).toEqual([...SCRIPT_NAMES, ...PRELUDES].toSorted());
});

describe.each(SCRIPT_NAMES)("%s", (name) => {
  const text = readLua(name);
  const header = parseHeader(text);
  const body = codeOf(text);
  const whole = codeOf([...header.uses.map(readLua), text].join("\n"));

  it("its header names each key that the body uses, and no other", () => {
    expect(indexes(body, "KEYS")).toEqual(upTo(header.keys.length));
    expect(header.keys.length).toBeGreaterThan(0);
  });

  it("its header names each argument that the body uses, and no other", () => {
    const fixed = header.variadic ? header.args.length - 1 : header.args.length;
    const used = indexes(whole, "ARGV").filter((i) => i <= fixed || !header.variadic);
    expect(used).toEqual(upTo(fixed));
    // Any number of values can only be read by a computed index.
    expect(/ARGV\[[^\d\]]|#ARGV/.test(body)).toBe(header.variadic);
  });

  it("uses the clock exactly when the header says so, as the first argument", () => {
    const asks = /\b(now_ms|now_us|int)\(/.test(body);
    expect(header.uses.includes("clock")).toBe(asks);
    expect(header.args.indexOf("clock")).toBe(asks ? 0 : -1);
    expect(body).not.toMatch(/"TIME"/);
  });

  it("calls something of each prelude in its header, itself or through another, and nothing of others", () => {
    for (const prelude of PRELUDES) {
      const others = header.uses.filter((other) => other !== prelude).map(readLua);
      const code = codeOf([...others, text].join("\n"));
      const own = functionsOf(code);
      const calls = (OFFERED.get(prelude) ?? []).filter(
        (name) =>
          !own.includes(name) && new RegExp(`(?<![\\w.]|function )${name.replace(".", "\\.")}\\(`).test(code),
      );
      expect([prelude, calls.length > 0]).toEqual([prelude, header.uses.includes(prelude)]);
    }
  });

  it("opens with what it does and says what it answers", () => {
    expect(text).toMatch(/^-- [A-Z][^\n]+\.$/m);
    expect(text).toMatch(/^-- -> {3}\S/m);
    expect(text).not.toMatch(/cjson/);
  });
});

describe("the clock argument", () => {
  it.each([
    [{}, ""],
    [{ clockOffsetMs: 0 }, ""],
    [{ clockOffsetMs: 250 }, "+250"],
    [{ clockOffsetMs: -250 }, "-250"],
    [{ frozenNow: () => 1000.7 }, "=1000"],
  ])("for %j is %j", (options, argument) => {
    expect(clockArgument(options)()).toBe(argument);
  });
});
