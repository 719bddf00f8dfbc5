// Short (`npm test`): a master that is killed three times while workers run, tasks are submitted and a schedule ticks. Longer: test/soak.
import { describe, expect, test, vi } from "vitest";
import { eachSecond, type Link, masterUnderKills } from "./support/master-kills.ts";
import { placesFor } from "./support/places.ts";

vi.setConfig({ testTimeout: 150_000 });

/** Through the master slots stand still while it is away. A busy machine takes its time to start one. */
const LEASE_MS = { "on the store": 3000, "through the master": 20_000 };

describe.each(placesFor("a SQLite file"))("kill -9 of the master, on $name", (place) => {
  test.each<Link>(["on the store", "through the master"])(
    "workers %s: no slot restarts, no task is lost, one task per tick",
    async (link) => {
      const cost = await masterUnderKills(place, {
        link,
        kills: 3,
        everyMs: 2500,
        awayMs: 300,
        leaseMs: LEASE_MS[link],
      });
      expect(cost).toMatchObject({ restarted: 0, lost: 0, doubled: 0 });
      expect(cost.ticks.length).toBeGreaterThan(3);
      expect(cost.ticks).toEqual(eachSecond(cost.ticks));
    },
  );
});
