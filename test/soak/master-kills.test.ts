// Soak: the master is killed every 10 s for FLEET_SOAK_KILLS_SECONDS (default 120).
import { describe, expect, test } from "vitest";
import { eachSecond, type Link, masterUnderKills } from "../support/master-kills.ts";
import { PLACES } from "../support/places.ts";

const KILLS = Math.ceil(Number(process.env["FLEET_SOAK_KILLS_SECONDS"] ?? 120) / 10);
/** Through the master slots stand still while it is away: a busy machine takes more than the default lease to start one. */
const LEASE_MS = { "on the store": 10_000, "through the master": 30_000 };

describe.each(PLACES)("kill -9 of the master, on $name", (place) => {
  test.each<Link>(["on the store", "through the master"])(
    "workers %s: no slot restarts, no task is lost, one task per tick",
    async (link) => {
      const cost = await masterUnderKills(place, {
        link,
        kills: KILLS,
        everyMs: 10_000,
        awayMs: 500,
        leaseMs: LEASE_MS[link],
      });
      expect(cost).toMatchObject({ restarted: 0, lost: 0, doubled: 0 });
      expect(cost.ticks.length).toBeGreaterThan(3);
      expect(cost.ticks).toEqual(eachSecond(cost.ticks));
    },
  );
});
