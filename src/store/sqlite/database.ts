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
/** A file that was put in the place of the open one and cannot be used is tried again so often. */
const RETRY_MS = 1000;

/** One open connection and its prepared statements. */
export interface Database {
  /** For messages: the path, or ":memory:". */
  readonly name: string;
  /** Where the file lies; undefined for a database in memory. */
  readonly path?: string;
  /**
   * Throws `FLEET_STORE_UNAVAILABLE` while the file at the path is not the open one, which is noticed within a second. One that was put
   * in its place is opened instead, whatever stands in it: so this store has lost its data, or has other data, as after a restart.
   */
  check(): void;
  /** Called whenever another file has been opened. */
  onReplaced(listener: () => void): void;
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
  return { name: ":memory:", check() {}, onReplaced() {}, ...statementsOf(() => db) };
}

/**
 * Opens the file at `path`, makes it (0600, in a directory of 0700) where there is none, and brings its schema up to date; any
 * number of processes may do so at once. A file that is damaged, foreign or newer is refused and never written to.
 * Throws `FLEET_STORE_INCOMPATIBLE` or `FLEET_STORE_UNAVAILABLE` (also when it stays locked until `deadlineMs` have passed).
 */
export async function openFile(path: string, deadlineMs: number): Promise<Database> {
  prepareFile(path);
  return fileDatabase(path, await connect(path, deadlineMs), () => connect(path, deadlineMs));
}

interface OpenedFile {
  connection: Connection;
  identity: FileIdentity;
}

async function connect(path: string, deadlineMs: number): Promise<OpenedFile> {
  const driver = await loadDriver();
  const deadline = monotonicMs() + deadlineMs;
  let db: Connection | undefined;
  try {
    const opened = (db = driver.open(path));
    opened.exec("PRAGMA busy_timeout = 0");
    await whileBusy(deadline, () => configure(opened, path));
    await whileBusy(deadline, () => migrate(opened, path));
    return { connection: opened, identity: identityOf(path) };
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

/** A database that follows its path: see `Database.check`. */
function fileDatabase(path: string, first: OpenedFile, open: () => Promise<OpenedFile>): Database {
  let { connection, identity } = first;
  const listeners: (() => void)[] = [];
  const statements = statementsOf(() => connection);
  let closed = false;
  let opening = false;
  let nextTry = 0;
  /** Why the file in the old one's place cannot be used. */
  let unfit: string | undefined;

  async function openOther(): Promise<void> {
    if (opening || monotonicMs() < nextTry) return;
    opening = true;
    try {
      const other = await open();
      if (closed) return other.connection.close();
      const old = connection;
      ({ connection, identity } = other);
      unfit = undefined;
      statements.forget();
      old.close();
      for (const listener of listeners) listener();
    } catch (error) {
      unfit = messageOf(error);
      nextTry = monotonicMs() + RETRY_MS;
    } finally {
      opening = false;
    }
  }

  return {
    name: path,
    path,
    check() {
      const found = identity.look();
      if (found === "same") return;
      if (found === "replaced") void openOther();
      const why =
        found === "deleted"
          ? "the file was deleted while it was open. Nothing is read or written until there is one again: put a backup in its place, or open the store anew to begin with an empty one"
          : `the file was replaced while it was open; ${unfit === undefined ? "the new one is being opened" : `the new one cannot be used: ${unfit}`}`;
      throw unavailable(path, why, { retryable: true });
    },
    onReplaced: (listener) => void listeners.push(listener),
    ...statements,
    close() {
      closed = true;
      statements.close();
    },
  };
}

function statementsOf(
  connection: () => Connection,
): Pick<Database, "exec" | "sql" | "close"> & { forget(): void } {
  const statements = new Map<string, Statement>();
  return {
    exec: (sql) => connection().exec(sql),
    sql(text) {
      let statement = statements.get(text);
      if (statement === undefined) statements.set(text, (statement = connection().prepare(text)));
      return statement;
    },
    forget: () => statements.clear(),
    close() {
      statements.clear();
      connection().close();
    },
  };
}
