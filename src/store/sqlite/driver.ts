/**
 * A thin shim over the `node:sqlite` API: the one built into Node where it comes without a flag (22.13 and later), else
 * `@photostructure/sqlite`, which has the same API and brings its binary along, so that no install script has to run.
 *
 * Rows come as arrays in the order of the selected columns: half the cost of objects, and the same in both drivers.
 */
export type SqlValue = string | number | bigint | null | Uint8Array;
export type Row = readonly unknown[];

export interface Statement {
  run(...values: SqlValue[]): { changes: number };
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller names its columns
  get<T extends Row>(...values: SqlValue[]): T | undefined;
  /** Always the whole answer: a cursor left open across ticks would hold back the checkpoint of every process. */
  all<T extends Row>(...values: SqlValue[]): T[];
}

export interface Connection {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

export interface Driver {
  name: "node:sqlite" | "@photostructure/sqlite";
  open(path: string): Connection;
}

interface NativeStatement {
  run(...values: SqlValue[]): { changes: number | bigint };
  get(...values: SqlValue[]): unknown;
  all(...values: SqlValue[]): unknown[];
  setReturnArrays?(on: boolean): void;
}

interface NativeDatabase {
  exec(sql: string): void;
  prepare(sql: string): NativeStatement;
  close(): void;
}

interface NativeModule {
  DatabaseSync: new (path: string, options: { enableForeignKeyConstraints: boolean }) => NativeDatabase;
}

let loaded: Promise<Driver> | undefined;

/** The driver of this Node, loaded once. */
export function loadDriver(): Promise<Driver> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<Driver> {
  const builtIn = builtInSqlite();
  if (builtIn !== undefined) return driver("node:sqlite", builtIn);
  return driver("@photostructure/sqlite", await import("@photostructure/sqlite"));
}

function driver(name: Driver["name"], module: NativeModule): Driver {
  return {
    name,
    open: (path) => connection(new module.DatabaseSync(path, { enableForeignKeyConstraints: false })),
  };
}

/** Node's own module, without the warning that its API may still change (that is what this shim is for). */
function builtInSqlite(): NativeModule | undefined {
  const { getBuiltinModule } = process as { getBuiltinModule?: (id: string) => unknown };
  if (getBuiltinModule === undefined) return undefined;
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = (warning: string | Error, ...rest: never[]) => {
    if (String(warning).includes("SQLite is an experimental feature")) return;
    emitWarning(warning, ...rest);
  };
  try {
    return getBuiltinModule("node:sqlite") as NativeModule | undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

function connection(db: NativeDatabase): Connection {
  return {
    exec: (sql) => db.exec(sql),
    prepare: (sql) => statement(db.prepare(sql)),
    close: () => db.close(),
  };
}

function statement(native: NativeStatement): Statement {
  const arrays = native.setReturnArrays !== undefined;
  native.setReturnArrays?.(true);
  const toRow = (row: unknown): Row => (arrays ? (row as Row) : Object.values(row as object));
  return {
    run: (...values) => ({ changes: Number(native.run(...values).changes) }),
    // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as declared above
    get<T extends Row>(...values: SqlValue[]) {
      const row = native.get(...values);
      return row === undefined || row === null ? undefined : (toRow(row) as T);
    },
    all<T extends Row>(...values: SqlValue[]) {
      const rows = coded(() => native.all(...values));
      return (arrays ? rows : rows.map(toRow)) as T[];
    },
  };
}

/** Result codes by the words that SQLite has for them. */
const CODES: Readonly<Record<string, number>> = {
  "database is locked": 5,
  "database table is locked": 6,
  "attempt to write a readonly database": 8,
  "disk I/O error": 10,
  "database disk image is malformed": 11,
  "unable to open database file": 14,
  "file is not a database": 26,
};

/** `@photostructure/sqlite` leaves the result code out of what `all` throws; what went wrong is told by it alone. */
function coded<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof Error && !("errcode" in error)) {
      const words = Object.keys(CODES).find((text) => error.message.includes(text));
      if (words !== undefined) Object.assign(error, { errcode: CODES[words] });
    }
    throw error;
  }
}
