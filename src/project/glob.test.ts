import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findFiles, matchesGlob } from "./glob.ts";

const FILES = [
  "a.ts",
  "b.js",
  "automations/one.ts",
  "automations/two.ts",
  "automations/.hidden.ts",
  "automations/deep/three.ts",
  "automations/deep/er/four.ts",
  "node_modules/pkg/five.ts",
  ".fleet/build/six.ts",
];

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "fleet-glob-"));
  for (const file of FILES) {
    mkdirSync(dirname(join(dir, file)), { recursive: true });
    writeFileSync(join(dir, file), "");
  }
  symlinkSync(dir, join(dir, "automations", "circle"));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

test.each([
  ["*.ts", ["a.ts"]],
  ["./automations/*.ts", ["automations/one.ts", "automations/two.ts"]],
  ["automations/t?o.ts", ["automations/two.ts"]],
  [
    "automations/**/*.ts",
    ["automations/deep/er/four.ts", "automations/deep/three.ts", "automations/one.ts", "automations/two.ts"],
  ],
  ["**/four.ts", ["automations/deep/er/four.ts"]],
  ["**/**/er/**/*.ts", ["automations/deep/er/four.ts"]],
  ["automations/*/three.ts", ["automations/deep/three.ts"]],
  ["automations/.*.ts", ["automations/.hidden.ts"]],
  ["node_modules/*/five.ts", ["node_modules/pkg/five.ts"]],
  ["automations", []],
  ["missing/*.ts", []],
])("%s", (pattern, expected) => {
  const found = findFiles(dir, pattern);
  expect(found.map((file) => relative(dir, file))).toEqual(expected);
  for (const file of found) expect(matchesGlob(dir, pattern, file)).toBe(true);
});

test("a new file is recognised by the same rules", () => {
  expect(matchesGlob(dir, "./automations/*.ts", join(dir, "automations/new.ts"))).toBe(true);
  expect(matchesGlob(dir, "./automations/*.ts", join(dir, "automations/deep/new.ts"))).toBe(false);
  expect(matchesGlob(dir, "**/*.ts", join(dir, "node_modules/x/new.ts"))).toBe(false);
  expect(matchesGlob(dir, "../x/*.ts", join(dir, "../x/new.ts"))).toBe(true);
});

test("a hostile pattern takes no longer than a plain one", () => {
  const long = "a".repeat(5000);
  const started = performance.now();
  expect(matchesGlob("/", `/${"*a".repeat(50)}b`, `/${long}`)).toBe(false);
  expect(matchesGlob("/", `/${"**/".repeat(50)}x`, `/${"d/".repeat(200)}y`)).toBe(false);
  expect(performance.now() - started).toBeLessThan(1000);
});
