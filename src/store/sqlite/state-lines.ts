import type { Database } from "./database.ts";

const FIRST = `SELECT request, held_by FROM lock_waiters
  WHERE ns = ? AND name = ? AND key = ? ORDER BY place LIMIT 1`;
const PLACE = "SELECT place FROM lock_waiters WHERE ns = ? AND name = ? AND key = ? AND request = ?";
const BEFORE = "SELECT count(*) FROM lock_waiters WHERE ns = ? AND name = ? AND key = ? AND place < ?";
const WAIT = `INSERT INTO lock_waiters (ns, name, key, request, holder, held_by, since, patience)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (ns, name, key, request) DO UPDATE SET patience = excluded.patience`;
const STEP_OUT = "DELETE FROM lock_waiters WHERE ns = ? AND name = ? AND key = ? AND request = ?";
const FORGET = "DELETE FROM lock_waiters WHERE ns = ? AND name = ? AND key = ? AND patience <= ?";
const FORGET_OTHERS = `DELETE FROM lock_waiters WHERE place IN
  (SELECT place FROM lock_waiters WHERE ns = ? AND patience <= ? LIMIT 10)`;
const OF_HOLDER = `SELECT key, request FROM lock_waiters WHERE ns = ? AND name = ? AND holder = ?`;
const ALL = `SELECT key, held_by, since FROM lock_waiters
  WHERE ns = ? AND name = ? AND patience > ? ORDER BY place`;
/** Longer than any patience: what is so long past has nobody who could ever ask again. */
const ABANDONED_MS = 3_600_000;

export interface LockLines {
  first(name: string, key: string): { request: string; by: string } | undefined;
  /** How many stand before it; null where it does not stand in line. */
  position(name: string, key: string, request: string): number | null;
  /** Takes a place, or keeps the one it has. */
  wait(args: {
    name: string;
    key: string;
    request: string;
    holder: string;
    by: string;
    now: number;
    until: number;
  }): void;
  /** Leaves the line. Answers whether it stood first. */
  stepOut(name: string, key: string, request: string): boolean;
  /** Forgets those who have not said again in time that they wait. Answers whether another stands first now. */
  forgetSilent(name: string, key: string, now: number): boolean;
  /** A holder is gone. Answers the keys whose first it was. */
  lose(name: string, holder: string): string[];
  all(name: string, now: number): { key: string; by: string; since: number }[];
}

/** The lines before locks. All but `all` and `position` inside a write transaction. */
export function createLockLines({ db, ns }: { db: Database; ns: string }): LockLines {
  const lines: LockLines = {
    first(name, key) {
      const row = db.sql(FIRST).get<[string, string]>(ns, name, key);
      return row && { request: row[0], by: row[1] };
    },
    position(name, key, request) {
      const place = db.sql(PLACE).get<[number]>(ns, name, key, request)?.[0];
      return place === undefined ? null : (db.sql(BEFORE).get<[number]>(ns, name, key, place)?.[0] ?? 0);
    },
    wait({ name, key, request, holder, by, now, until }) {
      db.sql(WAIT).run(ns, name, key, request, holder, by, now, until);
      db.sql(FORGET_OTHERS).run(ns, now - ABANDONED_MS);
    },
    stepOut(name, key, request) {
      const first = lines.first(name, key)?.request === request;
      return db.sql(STEP_OUT).run(ns, name, key, request).changes > 0 && first;
    },
    forgetSilent(name, key, now) {
      const first = lines.first(name, key)?.request;
      if (first === undefined) return false;
      db.sql(FORGET).run(ns, name, key, now);
      return lines.first(name, key)?.request !== first;
    },
    lose(name, holder) {
      const places = db.sql(OF_HOLDER).all<[string, string]>(ns, name, holder);
      return places.filter(([key, request]) => lines.stepOut(name, key, request)).map(([key]) => key);
    },
    all(name, now) {
      const rows = db.sql(ALL).all<[string, string, number]>(ns, name, now);
      return rows.map(([key, by, since]) => ({ key, by, since }));
    },
  };
  return lines;
}
