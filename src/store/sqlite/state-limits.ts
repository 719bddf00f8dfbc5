import { dueUs, type KeptWindow, limitRecord, nextTat, stepUs, windowIds } from "../limit-windows.ts";
import type { LimitStore, LimitWindow } from "../state-store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import type { Writer } from "./writer.ts";

/** How long a grant is known by its request. */
const KEEP_REQUESTS_MS = 60_000;

const GET = "SELECT last_at, cost, windows FROM limits WHERE ns = ? AND name = ? AND key = ?";
const PUT = `INSERT OR REPLACE INTO limits (ns, name, key, last_at, cost, windows, free_at)
  VALUES (?, ?, ?, ?, ?, ?, ?)`;
const REQUEST = "SELECT at FROM limit_requests WHERE ns = ? AND name = ? AND request = ?";
const PUT_REQUEST =
  "INSERT OR REPLACE INTO limit_requests (ns, name, request, at, made) VALUES (?, ?, ?, ?, ?)";
const FORGET_REQUESTS = `DELETE FROM limit_requests WHERE (ns, name, request) IN
  (SELECT ns, name, request FROM limit_requests WHERE ns = ? AND made <= ? LIMIT 5)`;
const NAMES = "SELECT DISTINCT name FROM limits WHERE ns = ? ORDER BY name";
const SHOW = `SELECT key, windows FROM limits WHERE ns = ? AND name = ? AND free_at > ?
  ORDER BY free_at LIMIT ?`;
const FREE = "SELECT 1 FROM limits WHERE ns = ? AND free_at <= ? LIMIT 1";
const FORGET = "DELETE FROM limits WHERE ns = ? AND free_at <= ?";
const FORGET_SOME = `DELETE FROM limits WHERE (ns, name, key) IN
  (SELECT ns, name, key FROM limits WHERE ns = ? AND free_at <= ? LIMIT 3)`;

interface Kept extends KeptWindow {
  id: string;
  /** Whether the last call had this window. */
  last: boolean;
}

interface State {
  lastAt: number;
  cost: number;
  windows: Kept[];
}

export function createLimits(parts: { db: Database; ns: string; clock: Clock; writer: Writer }): LimitStore {
  const { db, ns, clock, writer } = parts;
  const nowUs = () => Math.floor(clock() * 1000);

  function read(name: string, key: string): State | undefined {
    const row = db.sql(GET).get<[number, number, string]>(ns, name, key);
    return row && { lastAt: row[0], cost: row[1], windows: JSON.parse(row[2]) as Kept[] };
  }

  function write(name: string, key: string, { lastAt, cost, windows }: State): void {
    const freeAt = Math.max(...windows.map(({ tat }) => tat));
    db.sql(PUT).run(ns, name, key, lastAt, cost, JSON.stringify(windows), freeAt);
  }

  /** These windows as they are kept, and the others that still count. */
  function merged(windows: readonly LimitWindow[], state: State | undefined, now: number) {
    const ids = windowIds(windows);
    const kept = new Map(state?.windows.map((window) => [window.id, window]));
    const own = windows.map(({ limit, perMs, burst }, i): Kept => ({
      id: ids[i] as string,
      limit,
      perMs,
      burst,
      tat: kept.get(ids[i] as string)?.tat ?? 0,
      last: true,
    }));
    for (const id of ids) kept.delete(id);
    const others = [...kept.values()].filter(({ tat }) => tat > now);
    return { own, others: others.map((window) => ({ ...window, last: false })) };
  }

  return {
    take({ name, key, windows, cost, withinMs, request }) {
      return writer.write(() => {
        const now = nowUs();
        const had = db.sql(REQUEST).get<[number]>(ns, name, request)?.[0];
        if (had !== undefined) return answer("granted", had, now);
        const state = read(name, key);
        const { own, others } = merged(windows, state, now);
        const at = Math.max(now, ...own.map((window) => dueUs(window, window.tat, cost, now)));
        if (at - now > withinMs * 1000) return answer("later", at, now);
        const taken = own.map((window) => ({ ...window, tat: nextTat(window, window.tat, cost, at) }));
        if (state === undefined) db.sql(FORGET_SOME).run(ns, now);
        write(name, key, { lastAt: at, cost, windows: [...taken, ...others] });
        db.sql(PUT_REQUEST).run(ns, name, request, at, Math.floor(now / 1000));
        db.sql(FORGET_REQUESTS).run(ns, Math.floor(now / 1000) - KEEP_REQUESTS_MS);
        return answer("granted", at, now);
      });
    },

    giveBack({ name, key, windows, cost, at }) {
      return writer.write(() => {
        const state = read(name, key);
        if (state?.lastAt !== Math.round(at * 1000) || state.cost !== cost) return "too-late";
        const { own, others } = merged(windows, state, nowUs());
        const back = own.map((window) => ({
          ...window,
          tat: Math.max(0, window.tat - cost * stepUs(window)),
        }));
        write(name, key, { lastAt: 0, cost: 0, windows: [...back, ...others] });
        return "given-back";
      });
    },

    list() {
      return writer.read(() =>
        db
          .sql(NAMES)
          .all<[string]>(ns)
          .map(([name]) => name),
      );
    },

    show({ name, n }) {
      return writer.read(() => {
        const now = nowUs();
        return db
          .sql(SHOW)
          .all<[string, string]>(ns, name, now, Math.max(0, n))
          .map(([key, text]) => {
            const windows = (JSON.parse(text) as Kept[]).filter(({ last }) => last);
            const plain = windows.map(({ limit, perMs, burst, tat }) => ({ limit, perMs, burst, tat }));
            return limitRecord(key, plain, now);
          })
          .toSorted((a, b) => (a.key < b.key ? -1 : 1));
      });
    },

    sweep() {
      return writer.write(() => ({ forgotten: db.sql(FORGET).run(ns, nowUs()).changes }), {
        shortcut: () => (db.sql(FREE).get(ns, nowUs()) === undefined ? { forgotten: 0 } : undefined),
      });
    },
  };
}

function answer(outcome: "granted" | "later", atUs: number, nowUs: number) {
  return { outcome, waitMs: Math.max(0, Math.ceil((atUs - nowUs) / 1000)), at: atUs / 1000 };
}
