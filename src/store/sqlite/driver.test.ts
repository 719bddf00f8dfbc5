import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { loadDriver } from "./driver.ts";
import { isBusy, isFileFault, sqliteCode } from "./errors.ts";

async function files() {
  const folder = mkdtempSync(join(tmpdir(), "fleet-driver-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { driver: await loadDriver(), path: join(folder, "a.db") };
}

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

it("tells by code that a read met a lock", async () => {
  const { driver, path } = await files();
  const [one, two] = [driver.open(path), driver.open(path)];
  one.exec("CREATE TABLE t (x)");
  const read = two.prepare("SELECT * FROM t");
  one.exec("BEGIN EXCLUSIVE");
  expect(isBusy(thrownBy(() => read.all()))).toBe(true);
  expect(isBusy(thrownBy(() => read.get()))).toBe(true);
  one.exec("COMMIT");
  expect(read.all()).toEqual([]);
  one.close();
  two.close();
});

it("tells by code that what a read met is damaged", async () => {
  const { driver, path } = await files();
  const first = driver.open(path);
  first.exec("CREATE TABLE t (x)");
  first.exec("INSERT INTO t SELECT hex(randomblob(50)) FROM (SELECT 1 FROM sqlite_schema)");
  for (let i = 0; i < 12; i++) first.exec("INSERT INTO t SELECT hex(randomblob(50)) FROM t");
  first.close();
  const bytes = readFileSync(path);
  bytes.fill(0xff, 4096, 3 * 4096);
  writeFileSync(path, bytes);
  const second = driver.open(path);
  const error = thrownBy(() => second.prepare("SELECT * FROM t").all());
  expect([sqliteCode(error), isFileFault(error)]).toEqual([11, true]);
  second.close();
});
