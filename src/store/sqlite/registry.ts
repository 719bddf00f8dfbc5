import type { DamageBook } from "../damage.ts";
import { assignmentsOf } from "../read-assignments.ts";
import type { Registry } from "../store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import { createDesired } from "./desired.ts";
import { createFleetRow } from "./fleet-row.ts";
import { createLeaderLease } from "./leader.ts";
import type { Notifier } from "./notify.ts";
import { tablePlace } from "./places.ts";
import { createRegistryWatch } from "./registry-watch.ts";
import { createSlotLeases } from "./slots.ts";
import { createTurns } from "./turns.ts";
import { createWorkers } from "./workers.ts";
import type { Writer } from "./writer.ts";

const ASSIGNMENTS = "SELECT assignments FROM assignments WHERE ns = ?";
const PUT_ASSIGNMENTS = "INSERT OR REPLACE INTO assignments (ns, assignments) VALUES (?, ?)";

/** Composes the registry of its parts; here is what belongs to none of them alone. */
export function createRegistry(parts: {
  db: Database;
  ns: string;
  fleetId: string;
  clock: Clock;
  writer: Writer;
  notifier: Notifier;
  damage: DamageBook;
}): Registry {
  const { db, ns, clock, writer, damage } = parts;
  const fleet = createFleetRow(parts);
  const slots = createSlotLeases({ ...parts, fleet });
  const workers = createWorkers({ ...parts, fleet, slots });
  const desired = createDesired({ ...parts, fleet });
  const leader = createLeaderLease({ ...parts, fleet });
  const turns = createTurns(parts);
  const watches = createRegistryWatch({ ...parts, fleet });

  const assignmentsText = () => db.sql(ASSIGNMENTS).get<[string]>(ns)?.[0] ?? "{}";

  return {
    register: (args) => workers.register(args),
    beat: (args) => workers.beat(args),
    deregister: (args) => workers.deregister(args),
    pruneWorkers: (args) => workers.prune(args),
    removeWorker: (args) => workers.remove(args),
    setWish: (args) => workers.setWish(args),
    claimSlots: (args) => slots.claim(args),
    releaseSlots: (args) => slots.release(args),

    view() {
      return writer.read(() => {
        const now = clock();
        const [records, wanted, leases] = [workers.records(), desired.all(), slots.all()];
        const place = tablePlace("assignments", { table: "assignments", ns, key: [] });
        const held = { leases: leases.good, now };
        const assignments = assignmentsOf(damage, place, assignmentsText(), held);
        return {
          now,
          revision: fleet.read().revision,
          workers: records.good,
          desired: wanted.good,
          assignments: assignments.good,
          leases: leases.good,
          leader: leader.present(now),
          damaged: [wanted, leases, assignments, records].flatMap(({ damaged }) => damaged),
        };
      });
    },

    revision: () => writer.read(() => fleet.read().revision),
    manifests: () => writer.read(() => workers.manifests()),

    putDesired: (args) => desired.put(args),
    configHistory: (args) => desired.configHistory(args),

    lead: (args) => leader.lead(args),
    resign: (args) => leader.resign(args),

    putAssignments({ assignments, token }) {
      return writer.write(() => {
        if (!leader.holds(token, clock())) return "not-leader";
        const text = JSON.stringify(assignments);
        if (text === assignmentsText()) return "stored";
        db.sql(PUT_ASSIGNMENTS).run(ns, text);
        fleet.bumpRevision();
        return "stored";
      });
    },

    takeTurn: (args) => turns.takeTurn(args),
    endTurn: (args) => turns.endTurn(args),
    getState: (args) => slots.getState(args),
    setState: (args) => slots.setState(args),
    slotHealth: () => slots.slotHealth(),
    setSlotHealth: (args) => slots.setSlotHealth(args),
    watch: (onHint) => watches.watch(onHint),
  };
}
