import type { Registry } from "../store.ts";
import type { Clock } from "./clock.ts";
import type { FleetRow } from "./fleet-row.ts";
import type { Writer } from "./writer.ts";

export interface LeaderLease extends Pick<Registry, "lead" | "resign"> {
  /** Who leads at `now`, or null. */
  present(now: number): string | null;
  /** Whether `token` is the present leader's. */
  holds(token: string, now: number): boolean;
}

/** One lease for the whole namespace. One that ended and that nobody took since is renewed, under its token. */
export function createLeaderLease(parts: { fleet: FleetRow; clock: Clock; writer: Writer }): LeaderLease {
  const { fleet, clock, writer } = parts;

  return {
    present(now) {
      const { leader, leaderExpires } = fleet.read();
      return leaderExpires > now ? leader : null;
    },

    holds(token, now) {
      const { leader, leaderToken, leaderExpires } = fleet.read();
      return leader !== null && leaderExpires > now && String(leaderToken) === token;
    },

    lead({ candidate, leaseMs, rank = 0 }) {
      return writer.write(() => {
        const now = clock();
        const { leader, leaderToken, leaderExpires, leaderRank } = fleet.read();
        const live = leader !== null && leaderExpires > now;
        if (live && leader !== candidate && leaderRank >= rank) return { leading: false, token: "", leader };
        const token = leader === candidate ? leaderToken : fleet.nextToken();
        fleet.setLeader(candidate, token, now + leaseMs, rank);
        return { leading: true, token: String(token), leader: candidate };
      });
    },

    resign({ candidate }) {
      return writer.write(() => {
        if (fleet.read().leader === candidate) fleet.setLeader(null, 0, 0, 0);
      });
    },
  };
}
