import { readFileSync } from "node:fs";
import { ownFile } from "../../internal/own-files.ts";
import type { Connection } from "./driver.ts";
import { incompatible } from "./errors.ts";

/** "FLET": tells our files from other programs' databases. */
export const APPLICATION_ID = 0x464c4554;

/** In order; the place in this list, counted from 1, is the schema version kept as `user_version`. */
const MIGRATIONS = [
  "001-initial.sql",
  "002-queues.sql",
  "003-turns.sql",
  "004-topic-times.sql",
  "005-pools.sql",
  "006-state.sql",
  "007-edges.sql",
  "008-wishes.sql",
  "009-configs.sql",
  "010-leader-rank.sql",
  "011-task-prints.sql",
  "012-steps.sql",
].map((file) => ownFile(`store/sqlite/migrations/${file}`));

/** The schema version that this code reads and writes. */
export const SCHEMA_VERSION = MIGRATIONS.length;

/**
 * Throws `FLEET_STORE_INCOMPATIBLE` unless the file is ours and of a version that we know, or is empty. Returns its version
 * (0 when empty). Reads only, and in one transaction: another process may be making the schema at this very moment.
 */
export function checkSchema(db: Connection, file: string): number {
  db.exec("BEGIN");
  try {
    return schemaVersion(db, file);
  } finally {
    rollback(db);
  }
}

function schemaVersion(db: Connection, file: string): number {
  const id = pragma(db, "application_id");
  const version = pragma(db, "user_version");
  if (id !== APPLICATION_ID) {
    const [tables] = db.prepare("SELECT count(*) FROM sqlite_schema").get<[number]>() ?? [0];
    if (id === 0 && version === 0 && tables === 0) return 0;
    throw incompatible(
      file,
      "it is a database of another program; it was left as it is: choose another path",
    );
  }
  if (version > SCHEMA_VERSION) {
    throw incompatible(
      file,
      `it has schema version ${version}, this version of fleet-framework knows up to ${SCHEMA_VERSION}; ` +
        "update fleet-framework, or choose another path",
    );
  }
  return version;
}

/** Brings the schema up to date in one transaction. Throws a busy error, to be tried again, while others hold the lock. */
export function migrate(db: Connection, file: string): void {
  if (checkSchema(db, file) === SCHEMA_VERSION) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have done it while we waited for the lock.
    for (const migration of MIGRATIONS.slice(schemaVersion(db, file)))
      db.exec(readFileSync(migration, "utf8"));
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
    db.exec("COMMIT");
  } catch (error) {
    rollback(db);
    throw error;
  }
}

/** Ends a transaction that failed; SQLite may have ended it by itself already. */
export function rollback(db: Pick<Connection, "exec">): void {
  try {
    db.exec("ROLLBACK");
  } catch {
    // no transaction was left
  }
}

function pragma(db: Connection, name: "application_id" | "user_version"): number {
  return db.prepare(`PRAGMA ${name}`).get<[number]>()?.[0] ?? 0;
}
