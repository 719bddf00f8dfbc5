import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openFile } from "./database.ts";
import { loadDriver } from "./driver.ts";
import { APPLICATION_ID, SCHEMA_VERSION } from "./migrate.ts";
import { openSqliteStore } from "./store.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fleet-sqlite-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const failure = (path: string) =>
  openSqliteStore(`sqlite:${path}`).then(
    () => undefined,
    (error: unknown) => error,
  );

/** A database as another program, or another version, leaves it behind. */
async function makeDatabase(path: string, sql: string): Promise<void> {
  const db = (await loadDriver()).open(path);
  db.exec(sql);
  db.close();
}

test("makes what is missing, for this user alone, and marks the file as ours", async () => {
  const path = join(folder, "a", "b", "fleet.db");
  const db = await openFile(path, 1000);
  expect(statSync(join(folder, "a")).mode & 0o777).toBe(0o700);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(`${path}-wal`).mode & 0o777).toBe(0o600);
  expect(db.sql("PRAGMA application_id").get()).toEqual([APPLICATION_ID]);
  expect(db.sql("PRAGMA user_version").get()).toEqual([SCHEMA_VERSION]);
  expect(db.sql("PRAGMA journal_mode").get()).toEqual(["wal"]);
  expect(db.sql("PRAGMA synchronous").get()).toEqual([1]);
  expect(db.sql("PRAGMA busy_timeout").get()).toEqual([0]);
  db.close();
});

test("many connections that open a new file at once make one fleet", async () => {
  const url = `sqlite:${join(folder, "fleet.db")}`;
  const stores = await Promise.all(Array.from({ length: 8 }, () => openSqliteStore(url)));
  expect(new Set(stores.map((store) => store.fleetId)).size).toBe(1);
  await Promise.all(stores.map((store) => store.close()));
});

test("a closed store has left everything in the file itself", async () => {
  const path = join(folder, "fleet.db");
  const store = await openSqliteStore(`sqlite:${path}`);
  expect(statSync(`${path}-wal`).size).toBeGreaterThan(0);
  await store.close();
  expect(statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0);
});

test("the fleet's id outlives the connection; each namespace has its own", async () => {
  const url = `sqlite:${join(folder, "fleet.db")}`;
  const first = await openSqliteStore(url);
  await first.close();
  const again = await openSqliteStore(url);
  const beside = await openSqliteStore(url, { namespace: "other" });
  expect(again.fleetId).toBe(first.fleetId);
  expect(beside.fleetId).not.toBe(first.fleetId);
  await Promise.all([again.close(), beside.close()]);
});

test.each([
  ["a short text", (path: string) => writeFileSync(path, "hello")],
  ["a long text", (path: string) => writeFileSync(path, "no database at all. ".repeat(500))],
])("%s is refused and left as it is", async (_, make) => {
  const path = join(folder, "fleet.db");
  make(path);
  const before = readFileSync(path);
  expect(await failure(path)).toMatchObject({ code: "FLEET_STORE_INCOMPATIBLE" });
  expect(readFileSync(path).equals(before)).toBe(true);
  expect(existsSync(`${path}-wal`)).toBe(false);
});

test.each([
  ["with tables", "CREATE TABLE theirs (x)"],
  ["with a mark of its own", "PRAGMA application_id = 77"],
  ["with a version of its own", "PRAGMA user_version = 3"],
])("another program's database %s is refused and left as it is", async (_, sql) => {
  const path = join(folder, "theirs.db");
  await makeDatabase(path, sql);
  const before = readFileSync(path);
  const error = await failure(path);
  expect(error).toMatchObject({ code: "FLEET_STORE_INCOMPATIBLE" });
  expect(String(error)).toContain("another program");
  expect(String(error)).toContain(path);
  expect(readFileSync(path).equals(before)).toBe(true);
});

test("a newer schema is refused with both versions named", async () => {
  const path = join(folder, "fleet.db");
  await (await openSqliteStore(`sqlite:${path}`)).close();
  await makeDatabase(path, "PRAGMA user_version = 4711");
  const error = await failure(path);
  expect(error).toMatchObject({ code: "FLEET_STORE_INCOMPATIBLE" });
  expect(String(error)).toMatch(new RegExp(`4711.*up to ${SCHEMA_VERSION}`));
});

test("a truncated file is refused and left as it is", async () => {
  const path = join(folder, "fleet.db");
  await (await openSqliteStore(`sqlite:${path}`)).close();
  truncateSync(path, Math.floor(statSync(path).size / 2) + 100);
  const before = readFileSync(path);
  expect(await failure(path)).toMatchObject({ code: "FLEET_STORE_INCOMPATIBLE" });
  expect(readFileSync(path).equals(before)).toBe(true);
});

test("a directory, and a path through a file, are unavailable", async () => {
  mkdirSync(join(folder, "dir"));
  writeFileSync(join(folder, "file"), "");
  expect(await failure(join(folder, "dir"))).toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" });
  expect(await failure(join(folder, "file", "fleet.db"))).toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" });
});

test("a file that stays locked is unavailable after the deadline", async () => {
  const path = join(folder, "fleet.db");
  const holder = (await loadDriver()).open(path);
  holder.exec("BEGIN EXCLUSIVE");
  const error = await openSqliteStore(`sqlite:${path}`, { deadlineSeconds: 0.1 }).catch((e: unknown) => e);
  expect(error).toMatchObject({ code: "FLEET_STORE_UNAVAILABLE", retryable: true });
  holder.exec("ROLLBACK");
  await (await openSqliteStore(`sqlite:${path}`, { deadlineSeconds: 1 })).close();
  holder.close();
});

test.each([0, 0.01, 61, Number.NaN])("a deadline of %d seconds is refused", async (deadlineSeconds) => {
  const error = await openSqliteStore("sqlite::memory:", { deadlineSeconds }).catch((e: unknown) => e);
  expect(error).toMatchObject({ code: "FLEET_OPTION_INVALID" });
});

test("two stores in memory are two stores", async () => {
  const [a, b] = [await openSqliteStore("sqlite::memory:"), await openSqliteStore("sqlite::memory:")];
  await a.events.publish({ topic: "t", source: "s", payload: "1" });
  expect(await b.events.publish({ topic: "t", source: "s", payload: "1" })).toMatchObject({ seq: 1 });
  expect(a.fleetId).not.toBe(b.fleetId);
  await Promise.all([a.close(), b.close()]);
});
