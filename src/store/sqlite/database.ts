import { closeSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "../../errors.ts";
import { monotonicMs } from "../../internal/timers.ts";
import { type Connection, loadDriver, type Statement } from "./driver.ts";
import { incompatible, openError, unavailable } from "./errors.ts";
import { type FileIdentity, identityOf } from "./identity.ts";
import { checkSchema, migrate } from "./migrate.ts";
import { whileBusy } from "./retry.ts";

/** Pages in the write-ahead log after which a commit copies them back itself; idle time normally does it earlier. */
const AUTOCHECKPOINT_PAGES = 10_000;
/** Bytes to which the log is cut when it starts over. */
const JOURNAL_LIMIT = 16 * 1024 * 1024;

const SMALLEST_DATABASE = 512;

/** One open connection and its prepared statements. */
export interface Database {
  /** For messages: the path, or ":memory:". */
  readonly name: string;
  /** Undefined for a database in memory. */
  readonly file?: FileIdentity;
  exec(sql: string): void;
  /** The prepared statement of this text; made once. */
  sql(text: string): Statement;
  close(): void;
}

/** Opens a database that lives and dies with this handle. */
export async function openMemory(): Promise<Database> {
  const driver = await loadDriver();
  const db = driver.open(":memory:");
  migrate(db, ":memory:");
  return database(db, ":memory:");
}

/**
 * Opens the file at `path`, makes it (0600, in a directory of 0700) where there is none, and brings its schema up to date; any
 * number of processes may do so at once. A file that is damaged, foreign or newer is refused and never written to.
 * Throws `FLEET_STORE_INCOMPATIBLE` or `FLEET_STORE_UNAVAILABLE` (also when it stays locked until `deadlineMs` have passed).
 */
export async function openFile(path: string, deadlineMs: number): Promise<Database> {
  const driver = await loadDriver();
  const deadline = monotonicMs() + deadlineMs;
  prepareFile(path);
  let db: Connection | undefined;
  try {
    const opened = (db = driver.open(path));
    opened.exec("PRAGMA busy_timeout = 0");
    await whileBusy(deadline, () => configure(opened, path));
    await whileBusy(deadline, () => migrate(opened, path));
    return database(opened, path, identityOf(path));
  } catch (error) {
    db?.close();
    throw openError(error, path);
  }
}

function configure(db: Connection, path: string): void {
  checkSchema(db, path); // a foreign file must be refused before anything is written to it
  const [mode] = db.prepare("PRAGMA journal_mode").get<[string]>() ?? [""];
  if (mode !== "wal") {
    const [now] = db.prepare("PRAGMA journal_mode = WAL").get<[string]>() ?? [""];
    if (now !== "wal")
      throw incompatible(path, "its file system offers no shared memory; put it on a local disk");
  }
  db.exec("PRAGMA synchronous = NORMAL");
  db.exec("PRAGMA foreign_keys = OFF");
  db.exec("PRAGMA trusted_schema = OFF");
  db.exec("PRAGMA temp_store = MEMORY");
  db.exec(`PRAGMA wal_autocheckpoint = ${AUTOCHECKPOINT_PAGES}`);
  db.exec(`PRAGMA journal_size_limit = ${JOURNAL_LIMIT}`);
}

/**
 * Makes directory and file where missing, and refuses what is plainly no database. An existing file is never opened here:
 * closing any descriptor of it would drop the locks that other connections of this process hold on it.
 */
function prepareFile(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return createFile(path);
    if (found.isDirectory()) throw unavailable(path, "it is a directory");
    if (!found.isFile()) throw unavailable(path, "it is no regular file");
    if (found.size > 0 && found.size < SMALLEST_DATABASE)
      throw incompatible(path, "it is no SQLite database, or a damaged one; it was left as it is");
  } catch (error) {
    throw fileSystemError(error, path);
  }
}

function createFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error; // else: another process was faster
  }
}

function fileSystemError(error: unknown, path: string): Error {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === undefined || code.startsWith("FLEET_")) return error as Error;
  const reasons: Record<string, string> = {
    EACCES: "this user may not read and write it",
    EPERM: "this user may not read and write it",
    EROFS: "it lies on a read-only file system",
    ENOTDIR: "a part of its path is no directory",
    EEXIST: "a part of its path is no directory",
    ENOSPC: "the disk is full",
  };
  return unavailable(path, reasons[code] ?? messageOf(error), { cause: error, retryable: code === "ENOSPC" });
}

function database(db: Connection, name: string, file?: FileIdentity): Database {
  const statements = new Map<string, Statement>();
  return {
    name,
    file,
    exec: (sql) => db.exec(sql),
    sql(text) {
      let statement = statements.get(text);
      if (statement === undefined) statements.set(text, (statement = db.prepare(text)));
      return statement;
    },
    close() {
      statements.clear();
      db.close();
    },
  };
}
