import type { AcquireResult, LockRecord, LockStore } from "../state-store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import { createFleetRow } from "./fleet-row.ts";
import type { Notifier } from "./notify.ts";
import { createLockLines } from "./state-lines.ts";
import { createLockWatch } from "./state-watch.ts";
import type { Writer } from "./writer.ts";

const GRANT = `SELECT token, since, until, request, holder, held_by FROM lock_grants
  WHERE ns = ? AND name = ? AND key = ? AND until > ?`;
const PUT = `INSERT OR REPLACE INTO lock_grants (ns, name, key, token, since, until, request, holder, held_by)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const EXTEND = `UPDATE lock_grants SET until = max(until, ?)
  WHERE ns = ? AND name = ? AND key = ? AND token = ? AND until > ?`;
const DROP = "DELETE FROM lock_grants WHERE ns = ? AND name = ? AND key = ?";
const DROP_ENDED = `DELETE FROM lock_grants WHERE (ns, name, key) IN
  (SELECT ns, name, key FROM lock_grants WHERE ns = ? AND until <= ? LIMIT 10)`;
const OF_HOLDER = "SELECT key FROM lock_grants WHERE ns = ? AND name = ? AND holder = ? AND until > ?";
const HELD = `SELECT key, token, since, until, held_by FROM lock_grants
  WHERE ns = ? AND name = ? AND until > ? ORDER BY key`;
const NAMES = `SELECT name FROM lock_grants WHERE ns = ? AND until > ?
  UNION SELECT name FROM lock_waiters WHERE ns = ? AND patience > ? ORDER BY name`;

type GrantRow = [token: number, since: number, until: number, request: string, holder: string, by: string];

/** The rows are the only record of who holds what: a grant whose time is over counts as none, whoever looks. */
export function createLocks(parts: {
  db: Database;
  ns: string;
  fleetId: string;
  clock: Clock;
  writer: Writer;
  notifier: Notifier;
}): LockStore {
  const { db, ns, clock, writer } = parts;
  const fleet = createFleetRow(parts);
  const { watch, news } = createLockWatch(parts);
  const lines = createLockLines(parts);

  const grantOf = (name: string, key: string, now: number) => db.sql(GRANT).get<GrantRow>(ns, name, key, now);
  const drop = (name: string, key: string) => db.sql(DROP).run(ns, name, key);
  /** A lock has come free: tells whoever is first in line. */
  const tell = (name: string, key: string) => {
    if (lines.first(name, key) !== undefined) news(name, key);
  };

  function extend(name: string, lease: { key: string; token: string; holdMs: number }): number | undefined {
    const { key, token, holdMs } = lease;
    const now = clock();
    const until = now + Math.ceil(holdMs);
    const { changes } = db.sql(EXTEND).run(until, ns, name, key, tokenValue(token), now);
    return changes === 0 ? undefined : grantOf(name, key, now)?.[2];
  }

  function acquire(args: Parameters<LockStore["acquire"]>[0]): AcquireResult {
    const { name, key, request, holder, by, holdMs, waitFor } = args;
    const now = clock();
    db.sql(DROP_ENDED).run(ns, now);
    const grant = grantOf(name, key, now);
    // A repeat after a lost answer.
    if (grant?.[3] === request) return { outcome: "granted", token: String(grant[0]), until: grant[2], now };
    const changed = lines.forgetSilent(name, key, now);
    const first = lines.first(name, key);
    if (grant === undefined && (first === undefined || first.request === request)) {
      if (first !== undefined) lines.stepOut(name, key, request);
      const token = fleet.nextToken();
      const until = now + Math.ceil(holdMs);
      db.sql(PUT).run(ns, name, key, token, now, until, request, holder, by);
      return { outcome: "granted", token: String(token), until, now };
    }
    if (waitFor !== undefined)
      lines.wait({ name, key, request, holder, by, now, until: now + Math.ceil(waitFor.patienceMs) });
    // The lock is free, and whose turn it is has not heard of it.
    if (changed && grant === undefined) news(name, key);
    const position = lines.position(name, key, request);
    if (grant !== undefined) return { outcome: "held", by: grant[5], until: grant[2], position, now };
    return { outcome: "held", by: first?.by ?? "", until: null, position, now };
  }

  return {
    acquire: (args) => writer.write(() => acquire(args)),

    extend({ name, ...lease }) {
      return writer.write(() => {
        const until = extend(name, lease);
        return until === undefined ? { outcome: "lease-lost" } : { outcome: "extended", until };
      });
    },

    release({ name, key, token }) {
      return writer.write(() => {
        const now = clock();
        const grant = grantOf(name, key, now);
        if (grant === undefined || String(grant[0]) !== token) return "lease-lost";
        drop(name, key);
        lines.forgetSilent(name, key, now);
        tell(name, key);
        return "released";
      });
    },

    leave({ name, key, request }) {
      return writer.write(() => {
        const grant = grantOf(name, key, clock());
        if (grant?.[3] === request) {
          drop(name, key);
          tell(name, key);
        } else if (lines.stepOut(name, key, request) && grant === undefined) tell(name, key);
      });
    },

    keep({ name, leases }) {
      return writer.write(() => leases.map((lease) => extend(name, lease) !== undefined), {
        weight: Math.max(1, leases.length),
      });
    },

    lose({ name, holders }) {
      return writer.write(() => {
        const now = clock();
        const free = new Set<string>();
        for (const holder of holders) {
          for (const [key] of db.sql(OF_HOLDER).all<[string]>(ns, name, holder, now)) {
            drop(name, key);
            free.add(key);
          }
        }
        const released = free.size;
        for (const holder of holders) {
          for (const key of lines.lose(name, holder))
            if (grantOf(name, key, now) === undefined) free.add(key);
        }
        for (const key of free) tell(name, key);
        return { released };
      });
    },

    list() {
      return writer.read(() => {
        const now = clock();
        const names = db.sql(NAMES).all<[string]>(ns, now, ns, now);
        return names.map(([name]) => name);
      });
    },

    show({ name }) {
      return writer.read(() => {
        const now = clock();
        const records = new Map<string, LockRecord>();
        for (const [key, token, since, until, by] of db
          .sql(HELD)
          .all<[string, number, number, number, string]>(ns, name, now))
          records.set(key, { key, holder: { by, since, until, token: String(token) }, waiting: [] });
        for (const { key, by, since } of lines.all(name, now)) {
          const record = records.get(key) ?? { key, holder: null, waiting: [] };
          record.waiting.push({ by, since });
          records.set(key, record);
        }
        return [...records.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1));
      });
    },

    watch,
  };
}

/** A token as it stands in the table; one that no store ever gave out matches no row. */
function tokenValue(token: string): number {
  return /^[0-9]{1,16}$/.test(token) ? Number(token) : -1;
}
