import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, loadDriver } from "./driver.ts";
import { checkSchema, migrate, SCHEMA_VERSION } from "./migrate.ts";

let folder: string;
let ours: Connection;
let theirs: Connection;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "fleet-sqlite-"));
  const driver = await loadDriver();
  ours = driver.open(join(folder, "fleet.db"));
  ours.exec("PRAGMA journal_mode = WAL");
  theirs = driver.open(join(folder, "fleet.db"));
});
afterEach(() => {
  ours.close();
  theirs.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Calls `during` when the statement `sql` is prepared: another process that is quicker, in the middle of our step. */
function interrupted(db: Connection, sql: string, during: () => void): Connection {
  let happened = false;
  return {
    exec: (text) => db.exec(text),
    close: () => db.close(),
    prepare(text) {
      if (text === sql && !happened) {
        happened = true;
        during();
      }
      return db.prepare(text);
    },
  };
}

test("a schema that another process makes while we look is not taken for another program's", () => {
  let made = false;
  const db = interrupted(ours, "PRAGMA user_version", () => {
    migrate(theirs, "fleet.db");
    made = true;
  });
  expect(checkSchema(db, "fleet.db")).toBe(0);
  expect(made).toBe(true);
  expect(checkSchema(ours, "fleet.db")).toBe(SCHEMA_VERSION);
});

test("a schema that another process made before we got the lock is not made again", () => {
  let made = false;
  const db: Connection = {
    ...ours,
    exec(sql) {
      if (sql === "BEGIN IMMEDIATE" && !made) {
        made = true;
        migrate(theirs, "fleet.db");
      }
      ours.exec(sql);
    },
  };
  migrate(db, "fleet.db");
  expect(made).toBe(true);
  expect(checkSchema(ours, "fleet.db")).toBe(SCHEMA_VERSION);
});

test("migrating twice changes nothing", () => {
  migrate(ours, "fleet.db");
  const tables = () => ours.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").all();
  const before = tables();
  expect(before.length).toBeGreaterThan(10);
  migrate(ours, "fleet.db");
  expect(tables()).toEqual(before);
});
