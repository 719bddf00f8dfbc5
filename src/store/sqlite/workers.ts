import type { Manifest } from "../../protocol/manifest.ts";
import type { WorkerRecord } from "../../protocol/status.ts";
import type { DamageBook, DamagedRecord } from "../damage.ts";
import { readManifests } from "../read-manifests.ts";
import { slotReports, storedNumber, workerInfo } from "../records.ts";
import type { Registry } from "../store.ts";
import { holderOf } from "../taken.ts";
import { readWish, type Wishes, withWish } from "../wish.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import type { FleetRow } from "./fleet-row.ts";
import { tablePlace } from "./places.ts";
import type { SlotLeases } from "./slots.ts";
import type { Writer } from "./writer.ts";

export interface Workers extends Pick<Registry, "register" | "beat" | "deregister" | "setWish"> {
  prune: Registry["pruneWorkers"];
  remove: Registry["removeWorker"];
  records(): { good: WorkerRecord[]; damaged: DamagedRecord[] };
  manifests(): Record<string, Manifest[]>;
}

/** How long the number of incarnations of a removed worker is remembered. */
const REMEMBER_GENERATION_MS = 90 * 24 * 3_600_000;

const ALL = `SELECT id, generation, last_seen_at, expires_at, info, slots FROM workers WHERE ns = ? ORDER BY id`;
const GET = "SELECT incarnation, last_seen_at, expires_at, info, slots FROM workers WHERE ns = ? AND id = ?";
const PUT = `INSERT OR REPLACE INTO workers
  (ns, id, incarnation, generation, last_seen_at, expires_at, info, slots) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
const BEAT = "UPDATE workers SET last_seen_at = ?, expires_at = ? WHERE ns = ? AND id = ?";
const SET_SLOTS = "UPDATE workers SET slots = ? WHERE ns = ? AND id = ?";
// Without an incarnation, so that a late beat of this one does not bring it back.
const SIGN_OFF = `UPDATE workers SET expires_at = min(last_seen_at, ?), incarnation = ''
  WHERE ns = ? AND id = ? AND incarnation = ?`;
const OFFLINE = "SELECT id FROM workers WHERE ns = ? AND expires_at < ?";
const DROP = "DELETE FROM workers WHERE ns = ? AND id = ?";
const GET_GENERATION = "SELECT generation FROM worker_generations WHERE ns = ? AND id = ?";
const PUT_GENERATION =
  "INSERT OR REPLACE INTO worker_generations (ns, id, generation, at) VALUES (?, ?, ?, ?)";
const DROP_GENERATIONS = `DELETE FROM worker_generations WHERE ns = ?1 AND at < ?2
  AND id NOT IN (SELECT id FROM workers WHERE ns = ?1)`;
const WISHES = "SELECT worker_id, kind, wish FROM worker_wishes WHERE ns = ?";
const GET_WISH = "SELECT wish FROM worker_wishes WHERE ns = ? AND worker_id = ? AND kind = ?";
const PUT_WISH = "INSERT OR REPLACE INTO worker_wishes (ns, worker_id, kind, wish) VALUES (?, ?, ?, ?)";
const DROP_WISH = "DELETE FROM worker_wishes WHERE ns = ? AND worker_id = ? AND kind = ?";
const MANIFESTS = "SELECT worker_id, manifests FROM manifests WHERE ns = ? ORDER BY worker_id";
const PUT_MANIFESTS = "INSERT OR REPLACE INTO manifests (ns, worker_id, manifests) VALUES (?, ?, ?)";
const DROP_MANIFESTS = "DELETE FROM manifests WHERE ns = ? AND worker_id = ?";

export function createWorkers(parts: {
  db: Database;
  ns: string;
  clock: Clock;
  writer: Writer;
  fleet: FleetRow;
  slots: SlotLeases;
  damage: DamageBook;
}): Workers {
  const { db, ns, clock, writer, fleet, slots, damage } = parts;

  function get(id: string) {
    const row = db.sql(GET).get<[string, number, number, string, string]>(ns, id);
    if (row === undefined) return undefined;
    const [incarnation, lastSeenAt, expiresAt, info, slotsText] = row;
    return { incarnation, lastSeenAt, expiresAt, info, slotsText };
  }

  return {
    register({ worker, manifests, ttlMs, replaces, generation: known = 0 }) {
      return writer.write(() => {
        const now = clock();
        const present = get(worker.id);
        const same = present?.incarnation === worker.incarnation;
        const dead = same || present?.incarnation === replaces;
        if (present !== undefined && !dead && present.expiresAt > now) {
          return {
            outcome: "taken",
            by: holderOf(present.info, worker.id),
            lastSeenAt: present.lastSeenAt,
          };
        }
        if (replaces !== undefined) slots.dropOfWorker(worker.id, replaces);
        const before = db.sql(GET_GENERATION).get<[number]>(ns, worker.id)?.[0] ?? 0;
        const generation = Math.max(known, same ? before : before + 1);
        db.sql(PUT_GENERATION).run(ns, worker.id, generation, now);
        const info = JSON.stringify(worker);
        const slotsText = same ? present.slotsText : "[]";
        db.sql(PUT).run(ns, worker.id, worker.incarnation, generation, now, now + ttlMs, info, slotsText);
        db.sql(PUT_MANIFESTS).run(ns, worker.id, JSON.stringify(manifests));
        fleet.bumpRevision();
        return { outcome: "registered", generation, now };
      });
    },

    beat({ workerId, incarnation, ttlMs, leaseMs, leases, slots: reported }) {
      return writer.write(
        () => {
          const now = clock();
          const present = get(workerId);
          if (present?.incarnation !== incarnation) return { outcome: "unknown" };
          db.sql(BEAT).run(now, now + ttlMs, ns, workerId);
          if (present.expiresAt <= now) fleet.bumpRevision(); // was offline and is back
          if (reported !== undefined) db.sql(SET_SLOTS).run(JSON.stringify(reported), ns, workerId);
          const lost = slots.renew(leases, now + leaseMs);
          return { outcome: "ok", now, revision: fleet.read().revision, lost };
        },
        { weight: 1 + leases.length },
      );
    },

    deregister({ workerId, incarnation }) {
      return writer.write(() => {
        if (get(workerId)?.incarnation !== incarnation) return;
        db.sql(SIGN_OFF).run(clock(), ns, workerId, incarnation);
        slots.dropOfWorker(workerId, incarnation);
        fleet.bumpRevision();
      });
    },

    prune({ offlineMs }) {
      return writer.write(() => {
        const now = clock();
        const horizon = now - offlineMs;
        const gone = db.sql(OFFLINE).all<[string]>(ns, horizon);
        for (const [id] of gone) {
          db.sql(DROP).run(ns, id);
          db.sql(DROP_MANIFESTS).run(ns, id);
          db.sql(DROP_WISH).run(ns, id, "drain");
        }
        slots.dropEnded(horizon);
        db.sql(DROP_GENERATIONS).run(ns, now - REMEMBER_GENERATION_MS);
        if (gone.length > 0) fleet.bumpRevision();
        return { removed: gone.length };
      });
    },

    remove({ workerId }) {
      return writer.write(() => {
        const present = get(workerId);
        if (present !== undefined && present.expiresAt > clock()) return "alive";
        const wishes =
          db.sql(DROP_WISH).run(ns, workerId, "cordon").changes +
          db.sql(DROP_WISH).run(ns, workerId, "drain").changes;
        // Leases end by their own time, and go with those of others.
        db.sql(DROP).run(ns, workerId);
        db.sql(DROP_MANIFESTS).run(ns, workerId);
        if (present !== undefined || wishes > 0) fleet.bumpRevision();
        return present === undefined ? "unknown" : "removed";
      });
    },

    setWish({ workerId, kind, wish }) {
      return writer.write(() => {
        const text = wish === null ? undefined : JSON.stringify(wish);
        if (db.sql(GET_WISH).get<[string]>(ns, workerId, kind)?.[0] === text) return "unchanged";
        if (text === undefined) db.sql(DROP_WISH).run(ns, workerId, kind);
        else db.sql(PUT_WISH).run(ns, workerId, kind, text);
        fleet.bumpRevision();
        return "stored";
      });
    },

    records() {
      const wishes = damage.look(
        tablePlace("wish for a worker", { table: "worker_wishes", ns, key: ["kind || ' ' || worker_id"] }),
        db
          .sql(WISHES)
          .all<[string, string, string]>(ns)
          .map(([id, kind, wish]) => [`${kind} ${id}`, wish] as const),
        readWish,
      );
      const rows = db.sql(ALL).all<[string, number, number, number, string, string]>(ns);
      const reports = damage.look(
        tablePlace("slots of a worker", { table: "workers", ns, key: ["id"] }),
        rows.map(([id, , , , , slotsText]) => [id, slotsText] as const),
        slotReports,
      );
      const slotsOf = new Map(reports.good);
      const records = damage.look(
        tablePlace("worker", { table: "workers", ns, key: ["id"] }),
        rows.map((row) => [row[0], row] as const),
        ([id, generation, lastSeenAt, expiresAt, info]): WorkerRecord => ({
          ...workerInfo(info, id),
          generation: storedNumber(generation, "generation"),
          lastSeenAt: storedNumber(lastSeenAt, "last_seen_at"),
          expiresAt: storedNumber(expiresAt, "expires_at"),
          slots: slotsOf.get(id) ?? [],
        }),
      );
      const wishOf = new Map(wishes.good) as Wishes;
      return {
        good: records.good.map(([, record]) => withWish(record, wishOf)),
        damaged: [wishes, reports, records].flatMap(({ damaged }) => damaged),
      };
    },

    manifests() {
      const rows = db.sql(MANIFESTS).all<[string, string]>(ns);
      return readManifests(
        damage,
        tablePlace("manifest", { table: "manifests", ns, key: ["worker_id"] }),
        rows,
      );
    },
  };
}
