import type { Assignments, DesiredAutomation } from "../../protocol/spec.ts";
import type { Registry } from "../store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import { createFleetRow } from "./fleet-row.ts";
import { createLeaderLease } from "./leader.ts";
import type { Notifier } from "./notify.ts";
import { createRegistryWatch } from "./registry-watch.ts";
import { createSlotLeases } from "./slots.ts";
import { createTurns } from "./turns.ts";
import { createWorkers } from "./workers.ts";
import type { Writer } from "./writer.ts";

const DESIRED = "SELECT name, desired FROM desired WHERE ns = ? ORDER BY name";
const GENERATION = "SELECT generation FROM desired WHERE ns = ? AND name = ?";
const PUT_DESIRED = "INSERT OR REPLACE INTO desired (ns, name, generation, desired) VALUES (?, ?, ?, ?)";
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
}): Registry {
  const { db, ns, clock, writer } = parts;
  const fleet = createFleetRow(parts);
  const slots = createSlotLeases({ ...parts, fleet });
  const workers = createWorkers({ ...parts, fleet, slots });
  const leader = createLeaderLease({ ...parts, fleet });
  const turns = createTurns(parts);
  const watches = createRegistryWatch({ ...parts, fleet });

  const assignmentsText = () => db.sql(ASSIGNMENTS).get<[string]>(ns)?.[0] ?? "{}";

  return {
    register: (args) => workers.register(args),
    beat: (args) => workers.beat(args),
    deregister: (args) => workers.deregister(args),
    pruneWorkers: (args) => workers.prune(args),
    claimSlots: (args) => slots.claim(args),
    releaseSlots: (args) => slots.release(args),

    view() {
      return writer.read(() => {
        const now = clock();
        return {
          now,
          revision: fleet.read().revision,
          workers: workers.records(),
          desired: Object.fromEntries(
            db
              .sql(DESIRED)
              .all<[string, string]>(ns)
              .map(([name, text]) => [name, JSON.parse(text) as DesiredAutomation]),
          ),
          assignments: JSON.parse(assignmentsText()) as Assignments,
          leases: slots.all(),
          leader: leader.present(now),
        };
      });
    },

    revision: () => writer.read(() => fleet.read().revision),
    manifests: () => writer.read(() => workers.manifests()),

    putDesired({ name, desired, expected }) {
      return writer.write(() => {
        const [present] = db.sql(GENERATION).get<[number]>(ns, name) ?? [0];
        if (present !== expected) return "conflict";
        db.sql(PUT_DESIRED).run(ns, name, desired.generation, JSON.stringify(desired));
        fleet.bumpRevision();
        return "stored";
      });
    },

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
