import { dueUs, type KeptWindow, limitRecord, nextTat, stepUs, windowIds } from "../limit-windows.ts";
import type { LimitStore, LimitWindow } from "../state-store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import type { Writer } from "./writer.ts";

/** How long a grant is known by its request, from its time on. */
const KEEP_REQUESTS_MS = 60_000;

const GET = "SELECT last_at, cost, windows FROM limits WHERE ns = ? AND name = ? AND key = ?";
const PUT = `INSERT OR REPLACE INTO limits (ns, name, key, last_at, cost, windows, free_at)
  VALUES (?, ?, ?, ?, ?, ?, ?)`;
const REQUEST = "SELECT at FROM limit_requests WHERE ns = ? AND name = ? AND request = ?";
const PUT_REQUEST =
  "INSERT OR REPLACE INTO limit_requests (ns, name, request, at, made) VALUES (?, ?, ?, ?, ?)";
const FORGET_REQUEST = "DELETE FROM limit_requests WHERE ns = ? AND name = ? AND request = ?";
const FORGET_REQUESTS = `DELETE FROM limit_requests WHERE (ns, name, request) IN
  (SELECT ns, name, request FROM limit_requests WHERE ns = ? AND made <= ? LIMIT 5)`;
const NAMES = "SELECT DISTINCT name FROM limits WHERE ns = ? ORDER BY name";
const SHOW = `SELECT key, windows FROM limits WHERE ns = ? AND name = ? AND free_at > ?
  ORDER BY free_at LIMIT ?`;
const FREE = "SELECT 1 FROM limits WHERE ns = ? AND free_at <= ? LIMIT 1";
/** How many keys one step of a sweep forgets: the lock is held for some milliseconds only. */
const SWEEP = 1000;
const forgetSome = (most: number) => `DELETE FROM limits WHERE (ns, name, key) IN
  (SELECT ns, name, key FROM limits WHERE ns = ? AND free_at <= ? LIMIT ${most})`;
const FORGET = forgetSome(SWEEP);
const FORGET_SOME = forgetSome(3);

interface Kept extends KeptWindow {
  id: string;
  /** Whether the last call had this window. */
  last: boolean;
}

/** A grant that was given back before its time, while others stood behind it. */
interface GivenBack {
  at: number;
  cost: number;
}

interface State {
  lastAt: number;
  cost: number;
  windows: Kept[];
  /** The earliest first. */
  back: GivenBack[];
}

/** Most of one key that are kept. */
const MOST_GIVEN_BACK = 1000;

export function createLimits(parts: { db: Database; ns: string; clock: Clock; writer: Writer }): LimitStore {
  const { db, ns, clock, writer } = parts;
  const nowUs = () => Math.floor(clock() * 1000);

  function read(name: string, key: string): State | undefined {
    const row = db.sql(GET).get<[number, number, string]>(ns, name, key);
    return row && { lastAt: row[0], cost: row[1], ...keptOf(row[2]) };
  }

  function write(name: string, key: string, { lastAt, cost, windows, back }: State, now: number): void {
    const freeAt = Math.max(...windows.map(({ tat }) => tat));
    const left = back.filter(({ at }) => at > now);
    const kept = JSON.stringify(left.length === 0 ? windows : { windows, back: left });
    db.sql(PUT).run(ns, name, key, lastAt, cost, kept, freeAt);
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
        const next = Math.max(now, ...own.map((window) => dueUs(window, window.tat, cost, now)));
        // What was given back before its time is had again, so that no place in line is left empty.
        const again = state?.back.find((one) => one.at >= now && one.cost === cost && one.at < next);
        const at = again?.at ?? next;
        if (at - now > withinMs * 1000) return answer("later", at, now);
        if (state === undefined) db.sql(FORGET_SOME).run(ns, now);
        if (state !== undefined && again !== undefined) {
          const back = state.back.filter((one) => one !== again);
          write(name, key, { ...state, windows: [...own, ...others], back }, now);
        } else {
          const taken = own.map((window) => ({ ...window, tat: nextTat(window, window.tat, cost, at) }));
          const windows = [...taken, ...others];
          write(name, key, { lastAt: at, cost, windows, back: state?.back ?? [] }, now);
        }
        db.sql(PUT_REQUEST).run(ns, name, request, at, Math.floor(at / 1000));
        db.sql(FORGET_REQUESTS).run(ns, Math.floor(now / 1000) - KEEP_REQUESTS_MS);
        return answer("granted", at, now);
      });
    },

    giveBack({ name, key, windows, cost, at, request }) {
      return writer.write(() => {
        const [now, atUs] = [nowUs(), Math.round(at * 1000)];
        const state = read(name, key);
        if (state === undefined || db.sql(REQUEST).get<[number]>(ns, name, request)?.[0] !== atUs)
          return "too-late";
        const { own, others } = merged(windows, state, now);
        let { lastAt, cost: lastCost, back } = state;
        let left = own;
        if (lastAt === atUs && lastCost === cost) {
          left = lowered(own, cost);
          [lastAt, lastCost] = [0, 0];
        } else if (atUs > now && back.length < MOST_GIVEN_BACK) {
          back = [...back, { at: atUs, cost }].toSorted((a, b) => a.at - b.at);
        } else return "too-late";
        for (let last = back.at(-1); last !== undefined && isLast(last, left); last = back.at(-1)) {
          left = lowered(left, last.cost);
          [lastAt, lastCost, back] = [0, 0, back.slice(0, -1)];
        }
        write(name, key, { lastAt, cost: lastCost, windows: [...left, ...others], back }, now);
        db.sql(FORGET_REQUEST).run(ns, name, request);
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
            const windows = keptOf(text).windows.filter(({ last }) => last);
            const plain = windows.map(({ limit, perMs, burst, tat }) => ({ limit, perMs, burst, tat }));
            return limitRecord(key, plain, now);
          })
          .toSorted((a, b) => (a.key < b.key ? -1 : 1));
      });
    },

    async sweep() {
      for (let forgotten = 0; ;) {
        const step = await writer.write(() => db.sql(FORGET).run(ns, nowUs()).changes, {
          weight: SWEEP,
          shortcut: () => (db.sql(FREE).get(ns, nowUs()) === undefined ? 0 : undefined),
        });
        forgotten += step;
        if (step < SWEEP) return { forgotten };
      }
    },
  };
}

/** Without any that were given back it is the windows alone. */
function keptOf(text: string): Pick<State, "windows" | "back"> {
  const kept = JSON.parse(text) as Kept[] | Pick<State, "windows" | "back">;
  return Array.isArray(kept) ? { windows: kept, back: [] } : kept;
}

/** Takes what a grant had added off again. */
function lowered(windows: readonly Kept[], cost: number): Kept[] {
  return windows.map((window) => ({ ...window, tat: Math.max(0, window.tat - cost * stepUs(window)) }));
}

/**
 * Whether nobody stands behind a grant that was given back: then it is as if it had never been. What a single window had made wait left the
 * tat a burst behind it: while it still stands there, nothing was taken since.
 */
function isLast({ at }: GivenBack, windows: readonly Kept[]): boolean {
  const [window, ...others] = windows;
  return window !== undefined && others.length === 0 && window.tat === at + window.burst * stepUs(window);
}

function answer(outcome: "granted" | "later", atUs: number, nowUs: number) {
  return { outcome, waitMs: Math.max(0, Math.ceil((atUs - nowUs) / 1000)), at: atUs / 1000 };
}
