import { byName } from "../../internal/by-name.ts";
import { CONFIG_HISTORY, versionOf } from "../../protocol/config.ts";
import type { DesiredAutomation } from "../../protocol/spec.ts";
import type { DamageBook, DamagedRecord } from "../damage.ts";
import { automationName, configVersion, desiredAutomation } from "../records.ts";
import type { Registry } from "../store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import type { FleetRow } from "./fleet-row.ts";
import { tablePlace } from "./places.ts";
import type { Writer } from "./writer.ts";

export interface Desired {
  put: Registry["putDesired"];
  configHistory: Registry["configHistory"];
  all(): { good: Record<string, DesiredAutomation>; damaged: DamagedRecord[] };
}

const ALL = "SELECT name, desired FROM desired WHERE ns = ? ORDER BY name";
const GENERATION = "SELECT generation FROM desired WHERE ns = ? AND name = ?";
const PUT = "INSERT OR REPLACE INTO desired (ns, name, generation, desired) VALUES (?, ?, ?, ?)";
// After a loss of data a generation can come a second time.
const PUT_CONFIG =
  "INSERT OR REPLACE INTO configs (ns, name, generation, at, version) VALUES (?, ?, ?, ?, ?)";
const TRIM_CONFIGS = `DELETE FROM configs WHERE ns = ?1 AND name = ?2 AND generation <=
  (SELECT generation FROM configs WHERE ns = ?1 AND name = ?2 ORDER BY generation DESC LIMIT 1 OFFSET ?3)`;
const CONFIGS = `SELECT generation, at, version FROM configs WHERE ns = ? AND name = ? AND generation < ?
  ORDER BY generation DESC LIMIT ?`;

/** Desired state, and the history of its configs. */
export function createDesired(parts: {
  db: Database;
  ns: string;
  clock: Clock;
  writer: Writer;
  fleet: FleetRow;
  damage: DamageBook;
}): Desired {
  const { db, ns, clock, writer, fleet, damage } = parts;

  const conflicts = (name: string, expected: number) =>
    (db.sql(GENERATION).get<[number]>(ns, name)?.[0] ?? 0) !== expected;

  return {
    put({ name, desired, expected, record }) {
      const put = () => {
        if (conflicts(name, expected)) return "conflict";
        const { generation } = desired;
        db.sql(PUT).run(ns, name, generation, JSON.stringify(desired));
        if (record !== undefined) {
          const version = JSON.stringify({ ...versionOf(desired), ...record });
          db.sql(PUT_CONFIG).run(ns, name, generation, clock(), version);
          db.sql(TRIM_CONFIGS).run(ns, name, CONFIG_HISTORY);
        }
        fleet.bumpRevision();
        return "stored";
      };
      // Whoever comes too late takes no lock.
      return writer.write<"stored" | "conflict">(put, {
        shortcut: () => (conflicts(name, expected) ? "conflict" : undefined),
      });
    },

    configHistory({ name, limit, before = Number.MAX_SAFE_INTEGER }) {
      return writer.read(() => {
        const rows = db.sql(CONFIGS).all<[number, number, string]>(ns, name, before, limit);
        const { good } = damage.look(
          tablePlace("config version", { table: "configs", ns, key: ["generation"], of: ["name", name] }),
          rows.map(([generation, at, version]) => [String(generation), { at, version }] as const),
          ({ at, version }) => ({ ...configVersion(version), at }),
        );
        return good.map(([, version]) => version);
      });
    },

    all() {
      const rows = db.sql(ALL).all<[string, string]>(ns);
      const place = tablePlace("desired state", { table: "desired", ns, key: ["name"] });
      const { good, damaged } = damage.look(place, rows, (text, name) =>
        desiredAutomation(automationName(name) && text),
      );
      return { good: byName(good), damaged };
    },
  };
}
