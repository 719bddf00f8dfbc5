import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SETTINGS, task } from "../conformance/queue-driver.ts";
import { type Connection, loadDriver } from "./driver.ts";
import { APPLICATION_ID, checkSchema, migrate, SCHEMA_VERSION } from "./migrate.ts";
import { openSqliteStore } from "./store.ts";

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

test("a file of the first version is brought up to date with all that lies in it", async () => {
  const first = readFileSync(new URL("./migrations/001-initial.sql", import.meta.url), "utf8");
  ours.exec(`BEGIN; ${first} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = 1; COMMIT`);
  ours.exec("INSERT INTO fleets (ns, fleet_id, last_token) VALUES ('', 'f', 1781234567890001)");
  ours.exec(
    "INSERT INTO streams (ns, name, max_length, ttl_ms, max_payload_bytes) VALUES ('', 's', 10, 10, 10)",
  );
  ours.exec("INSERT INTO stream_entries (stream_id, seq, at, entry) VALUES (1, 1, 1, '{}')");
  expect(checkSchema(ours, "fleet.db")).toBe(1);
  const path = join(folder, "fleet.db");
  // Two processes that come at once, each with calls under way.
  const stores = await Promise.all([openSqliteStore(`sqlite:${path}`), openSqliteStore(`sqlite:${path}`)]);
  try {
    expect(checkSchema(theirs, "fleet.db")).toBe(SCHEMA_VERSION);
    const [store, other] = stores;
    expect(store.fleetId).toBe("f");
    expect(await store.streams.list()).toEqual(["s"]);
    expect(await store.streams.stats({ stream: "s" })).toMatchObject({ bounds: { maxLength: 10 } });
    expect(ours.prepare("SELECT entry FROM stream_entries").all()).toEqual([["{}"]]);
    await store.queues.declare({ queue: "q", settings: SETTINGS, as: "owner" });
    await other.queues.submit({ queue: "q", lists: [[task("a")]] });
    expect((await store.queues.get({ queue: "q", id: "a" }))?.state).toBe("waiting");
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
});
