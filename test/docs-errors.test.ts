// Short (`npm test`): the table of error codes says exactly what the code knows, both ways.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { ERROR_CODES } from "../src/errors.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const table = readFileSync(join(ROOT, "docs/errors.md"), "utf8")
  .split("\n")
  .map((line) => /^\| `(FLEET_[A-Z_]+)` \| (.+?) \| (.+?) \|$/.exec(line))
  .filter((row) => row !== null)
  .map(([, code = "", meaning = "", remedy = ""]) => ({ code, meaning, remedy }));

it("docs/errors.md lists every code once, with the meaning that the code has, and a remedy", () => {
  expect(table.map(({ code, meaning }) => [code, meaning])).toEqual(Object.entries(ERROR_CODES));
  for (const { remedy } of table) expect(remedy.length).toBeGreaterThan(10);
});

it("every code is thrown somewhere in the source", () => {
  const text = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && file !== "errors.ts")
    .map((file) => readFileSync(join(ROOT, "src", file), "utf8"))
    .join("\n");
  expect(Object.keys(ERROR_CODES).filter((code) => !text.includes(`"${code}"`))).toEqual([]);
});
