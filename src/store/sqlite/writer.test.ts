import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Database, openFile } from "./database.ts";
import { type Connection, loadDriver } from "./driver.ts";
import { createWriter, type Writer } from "./writer.ts";

const MAX_CALLS = 6000;

let folder: string;
let db: Database;
let writer: Writer;
let commits = 0;
/** Another process, as far as SQLite can tell. */
let other: Connection;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "fleet-sqlite-"));
  const path = join(folder, "fleet.db");
  db = await openFile(path, 1000);
  db.exec("CREATE TABLE t (x)");
  commits = 0;
  writer = createWriter(db, { deadlineMs: 300, maxCalls: MAX_CALLS, afterCommit: () => commits++ });
  other = (await loadDriver()).open(path);
  other.exec("PRAGMA busy_timeout = 0");
});
afterEach(async () => {
  await writer.close();
  other.close();
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

const insert = (x: number) => () => void db.sql("INSERT INTO t VALUES (?)").run(x);
const rows = () =>
  other
    .prepare("SELECT x FROM t ORDER BY rowid")
    .all<[number]>()
    .map(([x]) => x);

test("the writes of one tick travel together, in order", async () => {
  await Promise.all(Array.from({ length: 500 }, (_, x) => writer.write(insert(x))));
  expect(commits).toBeLessThan(10); // one, unless the machine is so slow that a portion ends by time
  expect(rows()).toEqual(Array.from({ length: 500 }, (_, x) => x));
});

test("a great many writes are several transactions, still in order", async () => {
  await Promise.all(Array.from({ length: 5000 }, (_, x) => writer.write(insert(x))));
  expect(commits).toBeGreaterThanOrEqual(5);
  expect(rows()).toEqual(Array.from({ length: 5000 }, (_, x) => x));
});

test("a read sees the writes before it and none after it", async () => {
  const count = () => db.sql("SELECT count(*) FROM t").get<[number]>()?.[0];
  const seen = await Promise.all([
    writer.read(count),
    writer.write(insert(1)),
    writer.read(count),
    writer.write(insert(2)),
    writer.read(count),
  ]);
  expect(seen).toEqual([0, undefined, 1, undefined, 2]);
});

test("only the guilty call fails; the others of its tick are written once", async () => {
  const guilty = writer.write(() => {
    insert(99)();
    throw new Error("guilty");
  });
  const results = await Promise.allSettled([writer.write(insert(1)), guilty, writer.write(insert(2))]);
  expect(results.map(({ status }) => status)).toEqual(
    ["fulfilled", "fulfilled", "fulfilled"].with(1, "rejected"),
  );
  expect(rows().toSorted((a, b) => a - b)).toEqual([1, 2]);
  await expect(guilty).rejects.toMatchObject({ code: "FLEET_STORE_FAILED" });
});

test("a held lock is waited for, while the event loop goes on", async () => {
  other.exec("BEGIN IMMEDIATE");
  let turns = 0;
  const ticking = setInterval(() => turns++, 1);
  const written = writer.write(insert(1));
  await vi.waitFor(() => expect(turns).toBeGreaterThan(5), { timeout: 250, interval: 5 });
  other.exec("COMMIT");
  await written;
  clearInterval(ticking);
  expect(rows()).toEqual([1]);
});

test("reads do not wait for a lock that others hold", async () => {
  other.exec("BEGIN IMMEDIATE");
  expect(await writer.read(() => db.sql("SELECT 7").get())).toEqual([7]);
  expect(await writer.write(insert(1), { shortcut: () => "no need" })).toBe("no need");
  other.exec("ROLLBACK");
  expect(rows()).toEqual([]);
});

test("past its deadline a call fails, was not applied and never will be", async () => {
  other.exec("BEGIN IMMEDIATE");
  const error = await writer.write(insert(1)).catch((e: unknown) => e);
  expect(error).toMatchObject({ code: "FLEET_STORE_UNAVAILABLE", retryable: true });
  expect(error).not.toHaveProperty("outcome");
  other.exec("ROLLBACK");
  await writer.write(insert(2));
  expect(rows()).toEqual([2]);
});

test("what waits is bounded, in calls and in bytes", async () => {
  other.exec("BEGIN IMMEDIATE");
  const settled = Promise.allSettled(Array.from({ length: MAX_CALLS }, () => writer.write(insert(1))));
  await expect(writer.write(insert(2))).rejects.toMatchObject({ code: "FLEET_STORE_BUSY", retryable: true });
  await settled;
  const big = writer.write(insert(3), { bytes: 60 * 1024 * 1024 }).catch(() => "late");
  await expect(writer.write(insert(4), { bytes: 5 * 1024 * 1024 })).rejects.toMatchObject({
    code: "FLEET_STORE_BUSY",
  });
  expect(await big).toBe("late");
  other.exec("ROLLBACK");
  await writer.write(insert(5), { bytes: 60 * 1024 * 1024 });
  expect(rows()).toEqual([5]);
});

test("a full disk fails what does not fit, in clear words, and the store goes on", async () => {
  const pages = db.sql("PRAGMA page_count").get<[number]>()?.[0] ?? 0;
  db.exec(`PRAGMA max_page_count = ${pages + 2}`);
  const big = writer.write(() => db.sql("INSERT INTO t VALUES (?)").run("x".repeat(100_000)));
  const results = await Promise.allSettled([writer.write(insert(1)), big, writer.write(insert(2))]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  await expect(big).rejects.toMatchObject({ code: "FLEET_STORE_FAILED", retryable: true });
  await expect(big).rejects.toThrow(/disk is full/);
  expect(rows()).toEqual([1, 2]);
});

test("close lets accepted calls settle and refuses later ones", async () => {
  const accepted = writer.write(insert(1));
  const closed = writer.close();
  await expect(writer.write(insert(2))).rejects.toMatchObject({ code: "FLEET_CLOSED" });
  await expect(writer.read(() => 1)).rejects.toMatchObject({ code: "FLEET_CLOSED" });
  await Promise.all([accepted, closed]);
  expect(rows()).toEqual([1]);
});
