// Long (`npm run soak`): a minute of kills on each store. 15 s of it run in `npm test` (test/queues-kills.test.ts).
import { describe, expect, test } from "vitest";
import { measured } from "../support/heal-fleet.ts";
import { PLACES } from "../support/places.ts";
import { tasksUnderKills } from "../support/task-kills.ts";

const PLAN = { tasks: 20_000, workers: 3, slotsPerWorker: 8, taskMs: 60, killEveryMs: 5000, forMs: 60_000 };

describe.each(PLACES)("on $name", (place) => {
  test("20 000 tasks, three workers, one killed every 5 s for a minute: none lost, few twice", async () => {
    const { kills, lost, duplicates, stats } = await tasksUnderKills(place, PLAN);
    measured(`a minute of kill -9, ${place.name}`, `${kills} kills, lost ${lost}, duplicates ${duplicates}`);
    expect(kills).toBeGreaterThanOrEqual(10);
    expect(lost).toBe(0);
    // A slot that is killed may have done its task and not told yet; it begins no other before.
    expect(duplicates).toBeLessThanOrEqual(kills * PLAN.slotsPerWorker);
    expect(stats.counts).toMatchObject({ completed: PLAN.tasks, failed: 0, cancelled: 0 });
  }, 600_000);
});
