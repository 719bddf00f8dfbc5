import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";

/** What counts for a whole namespace. */
export interface FleetValues {
  revision: number;
  lastToken: number;
  leader: string | null;
  leaderToken: number;
  leaderExpires: number;
  leaderRank: number;
}

export interface FleetRow {
  read(): FleetValues;
  /** Inside a write transaction. */
  bumpRevision(): void;
  /** A fencing token: store microseconds, greater than every one before. Inside a write transaction. */
  nextToken(): number;
  setLeader(leader: string | null, token: number, expiresAt: number, rank: number): void;
}

const READ =
  "SELECT revision, last_token, leader, leader_token, leader_expires, leader_rank FROM fleets WHERE ns = ? LIMIT 1";
/** The revision begins at the store's time, so it grows also over a loss of all data. */
const ENSURE = "INSERT OR IGNORE INTO fleets (ns, fleet_id, revision) VALUES (?, ?, ?)";
const FLEET_ID = "SELECT fleet_id FROM fleets WHERE ns = ?";
const BUMP = "UPDATE fleets SET revision = revision + 1 WHERE ns = ?";
const SET_TOKEN = "UPDATE fleets SET last_token = ? WHERE ns = ?";
const SET_LEADER =
  "UPDATE fleets SET leader = ?, leader_token = ?, leader_expires = ?, leader_rank = ? WHERE ns = ?";

/** The fleet's id in this namespace; `candidate` becomes it when there is none yet. Inside a write transaction. */
export function ensureFleet(db: Database, ns: string, candidate: string, now: number): string {
  db.sql(ENSURE).run(ns, candidate, now);
  return readFleetId(db, ns) ?? candidate;
}

export function readFleetId(db: Database, ns: string): string | undefined {
  return db.sql(FLEET_ID).get<[string]>(ns)?.[0];
}

export function createFleetRow(parts: { db: Database; ns: string; fleetId: string; clock: Clock }): FleetRow {
  const { db, ns, fleetId, clock } = parts;
  // A wipe takes the row along; whoever writes next puts it back, with the id that this connection knows.
  const ensure = () => ensureFleet(db, ns, fleetId, clock());
  // Also survives a wipe: the clock counts milliseconds, and a claim within the same one must not get an old token.
  let lastGiven = 0;

  function read(): FleetValues {
    const row = db.sql(READ).get<[number, number, string | null, number, number, number]>(ns);
    const [revision, lastToken, leader, leaderToken, leaderExpires, leaderRank] = row ?? [
      0,
      0,
      null,
      0,
      0,
      0,
    ];
    return { revision, lastToken, leader, leaderToken, leaderExpires, leaderRank };
  }

  return {
    read,
    bumpRevision() {
      ensure();
      db.sql(BUMP).run(ns);
    },
    nextToken() {
      ensure();
      const token = Math.max(clock() * 1000, read().lastToken + 1, lastGiven + 1);
      lastGiven = token;
      db.sql(SET_TOKEN).run(token, ns);
      return token;
    },
    setLeader(leader, token, expiresAt, rank) {
      ensure();
      db.sql(SET_LEADER).run(leader, token, expiresAt, rank, ns);
    },
  };
}
