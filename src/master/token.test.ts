import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { adminToken } from "./token.ts";

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), "fleet-token-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

test("a new token, and the folder around it, are for their owner alone", () => {
  const dataDir = join(folder(), "deep", ".fleet");
  const { token, file = "", ...made } = adminToken(undefined, dataDir);
  expect(made).toEqual({ fresh: true, exposed: false });
  expect([modeOf(dataDir), modeOf(file)]).toEqual(["700", "600"]);
  expect(adminToken("", dataDir)).toEqual({ token, file, fresh: false, exposed: false });
});

test.each([0o640, 0o604, 0o620, 0o644])("a kept token with mode %o is one that others can get at", (mode) => {
  const dataDir = folder();
  const file = join(dataDir, "token");
  const token = "a".repeat(40);
  writeFileSync(file, `${token}\n`);
  chmodSync(file, mode);
  expect(adminToken(undefined, dataDir)).toEqual({ token, file, fresh: false, exposed: true });
  // It is of no account where another one was given.
  expect(adminToken("b".repeat(40), dataDir)).toMatchObject({ exposed: false });
});
