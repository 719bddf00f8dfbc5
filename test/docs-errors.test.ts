// Short (`npm test`): the tables of error codes say exactly what the code knows, both ways.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { COMMAND_CODES } from "../src/cli/exit.ts";
import { ERROR_CODES } from "../src/errors.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const [errors = "", commands = ""] = readFileSync(join(ROOT, "docs/errors.md"), "utf8").split(
  "\n## Codes of commands\n",
);
const SOURCES = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && file !== "errors.ts")
  .map((file) => ({ file, text: readFileSync(join(ROOT, "src", file), "utf8") }));

function tableOf(text: string): { code: string; meaning: string; remedy: string }[] {
  return text
    .split("\n")
    .map((line) => /^\| `(FLEET_[A-Z_]+)` \| (.+?) \| (.+?) \|$/.exec(line))
    .filter((row) => row !== null)
    .map(([, code = "", meaning = "", remedy = ""]) => ({ code, meaning, remedy }));
}

it.each([
  { what: "every code", text: errors, codes: ERROR_CODES },
  { what: "every code of commands", text: commands, codes: COMMAND_CODES },
])("docs/errors.md lists $what once, with the meaning that the code has, and a remedy", ({ text, codes }) => {
  const table = tableOf(text);
  expect(table.map(({ code, meaning }) => [code, meaning])).toEqual(Object.entries(codes));
  for (const { remedy } of table) expect(remedy.length).toBeGreaterThan(10);
});

it("every code is thrown somewhere in the source", () => {
  const text = SOURCES.map((source) => source.text).join("\n");
  expect(Object.keys(ERROR_CODES).filter((code) => !text.includes(`"${code}"`))).toEqual([]);
});

it("every code of commands is thrown by a command, and each of them is in one of the tables", () => {
  const text = SOURCES.filter(({ file }) => file.startsWith("cli/"))
    .map((source) => source.text)
    .join("\n");
  const thrown = new Set([...text.matchAll(/new CommandFailed\(\s*"([A-Z_]+)"/g)].map(([, code]) => code));
  expect(thrown).toEqual(new Set(Object.keys(COMMAND_CODES)));
  expect(Object.keys(COMMAND_CODES).filter((code) => code in ERROR_CODES)).toEqual([]);
});
