import { byName } from "../../internal/by-name.ts";
import { type SlotLease, slotKey } from "../../protocol/spec.ts";
import type { DamageBook, DamagedRecord } from "../damage.ts";
import { slotHealth, slotName, storedNumber } from "../records.ts";
import type { HeldLease, Registry } from "../store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import type { FleetRow } from "./fleet-row.ts";
import { tablePlace } from "./places.ts";
import type { Writer } from "./writer.ts";

export interface SlotLeases extends Pick<Registry, "getState" | "setState" | "slotHealth" | "setSlotHealth"> {
  claim: Registry["claimSlots"];
  release: Registry["releaseSlots"];
  all(): { good: SlotLease[]; damaged: DamagedRecord[] };
  /** Inside a write transaction: renews those that still bear their token; returns the others. */
  renew(leases: readonly HeldLease[], expiresAt: number): HeldLease[];
  /** Inside a write transaction. */
  dropOfWorker(workerId: string, incarnation: string): void;
  /** Inside a write transaction: those that ended before this. */
  dropEnded(before: number): void;
}

const ALL = `SELECT automation, slot_id, worker_id, incarnation, token, expires_at FROM leases WHERE ns = ?
  ORDER BY automation, slot_id`;
const GET = "SELECT token, expires_at FROM leases WHERE ns = ? AND automation = ? AND slot_id = ?";
const PUT = `INSERT OR REPLACE INTO leases (ns, automation, slot_id, worker_id, incarnation, token, expires_at)
  VALUES (?, ?, ?, ?, ?, ?, ?)`;
const RENEW =
  "UPDATE leases SET expires_at = ? WHERE ns = ? AND automation = ? AND slot_id = ? AND token = ?";
const RELEASE = "DELETE FROM leases WHERE ns = ? AND automation = ? AND slot_id = ? AND token = ?";
const DROP_ENDED = "DELETE FROM leases WHERE ns = ? AND expires_at < ?";
const DROP_INCARNATION = "DELETE FROM leases WHERE ns = ? AND worker_id = ? AND incarnation = ?";
const GET_STATE = "SELECT value FROM slot_state WHERE ns = ? AND automation = ? AND slot_id = ?";
const PUT_STATE = "INSERT OR REPLACE INTO slot_state (ns, automation, slot_id, value) VALUES (?, ?, ?, ?)";
const ALL_HEALTH = "SELECT automation, slot_id, health FROM slot_health WHERE ns = ?";
const PUT_HEALTH = "INSERT OR REPLACE INTO slot_health (ns, automation, slot_id, health) VALUES (?, ?, ?, ?)";
const DROP_STATE = "DELETE FROM slot_state WHERE ns = ? AND automation = ? AND slot_id = ?";

/** Slot leases and the durable values that they protect. The lease rows are the only record of who runs what. */
export function createSlotLeases(parts: {
  db: Database;
  ns: string;
  clock: Clock;
  writer: Writer;
  fleet: FleetRow;
  damage: DamageBook;
}): SlotLeases {
  const { db, ns, clock, writer, fleet, damage } = parts;

  return {
    claim({ workerId, incarnation, leaseMs, slots }) {
      return writer.write(
        () => {
          const now = clock();
          const granted: HeldLease[] = [];
          for (const { automation, slotId } of slots) {
            const held = db.sql(GET).get<[number, number]>(ns, automation, slotId);
            if (held !== undefined && held[1] > now) continue;
            const token = fleet.nextToken();
            db.sql(PUT).run(ns, automation, slotId, workerId, incarnation, token, now + leaseMs);
            granted.push({ automation, slotId, token: String(token) });
          }
          return granted;
        },
        { weight: Math.max(1, slots.length) },
      );
    },

    release({ leases }) {
      return writer.write(() => {
        for (const { automation, slotId, token } of leases) {
          db.sql(RELEASE).run(ns, automation, slotId, tokenValue(token));
        }
      });
    },

    all() {
      const rows = db.sql(ALL).all<[string, number, string, string, number, number]>(ns);
      const { good, damaged } = damage.look(
        tablePlace("lease", { table: "leases", ns, key: ["automation", "slot_id"] }),
        rows.map((row) => [`${row[0]}/${row[1]}`, row] as const),
        ([, , workerId, incarnation, token, expiresAt], slot): SlotLease => ({
          ...slotName(slot),
          workerId,
          incarnation,
          token: String(token),
          expiresAt: storedNumber(expiresAt, "expires_at"),
        }),
      );
      return { good: good.map(([, lease]) => lease), damaged };
    },

    renew(leases, expiresAt) {
      return leases.filter(({ automation, slotId, token }) => {
        return db.sql(RENEW).run(expiresAt, ns, automation, slotId, tokenValue(token)).changes === 0;
      });
    },

    dropOfWorker(workerId, incarnation) {
      db.sql(DROP_INCARNATION).run(ns, workerId, incarnation);
    },

    dropEnded(before) {
      db.sql(DROP_ENDED).run(ns, before);
    },

    getState({ automation, slotId }) {
      return writer.read(() => db.sql(GET_STATE).get<[string]>(ns, automation, slotId)?.[0]);
    },

    setState({ automation, slotId, token, value }) {
      return writer.write(
        () => {
          const held = db.sql(GET).get<[number, number]>(ns, automation, slotId);
          if (held === undefined || String(held[0]) !== token) return "lease-lost";
          if (value === null) db.sql(DROP_STATE).run(ns, automation, slotId);
          else db.sql(PUT_STATE).run(ns, automation, slotId, value);
          return "stored";
        },
        { bytes: value?.length ?? 0 },
      );
    },

    slotHealth() {
      return writer.read(() => {
        const rows = db.sql(ALL_HEALTH).all<[string, number, string]>(ns);
        const { good } = damage.look(
          tablePlace("health", { table: "slot_health", ns, key: ["automation", "slot_id"] }),
          rows.map(([automation, slotId, text]) => [slotKey({ automation, slotId }), text] as const),
          (text, slot) => slotName(slot) && slotHealth(text),
        );
        return byName(good);
      });
    },

    setSlotHealth({ automation, slotId, token, health }) {
      return writer.write(() => {
        const held = db.sql(GET).get<[number, number]>(ns, automation, slotId);
        if (held === undefined || String(held[0]) !== token) return "lease-lost";
        db.sql(PUT_HEALTH).run(ns, automation, slotId, JSON.stringify(health));
        return "stored";
      });
    },
  };
}

/** A token as it stands in the table; one that no store ever gave out matches no row. */
function tokenValue(token: string): number {
  return /^[0-9]{1,16}$/.test(token) ? Number(token) : -1;
}
