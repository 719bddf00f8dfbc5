// Short (`npm test`), 15 s of kills on each store; the full minute is test/soak/queues-kills.test.ts.
import { describe, expect, test } from "vitest";
import { measured } from "./support/heal-fleet.ts";
import { PLACES } from "./support/places.ts";
import { tasksUnderKills } from "./support/task-kills.ts";

const PLAN = { tasks: 20_000, workers: 3, slotsPerWorker: 8, taskMs: 12, killEveryMs: 2500, forMs: 15_000 };

describe.each(PLACES)("on $name", (place) => {
  test("20 000 tasks, three workers, one killed every few seconds: none lost, few twice", async () => {
    const { kills, lost, duplicates, stats, workersSeen } = await tasksUnderKills(place, PLAN);
    measured(`tasks under kill -9, ${place.name}`, `${kills} kills, lost ${lost}, duplicates ${duplicates}`);
    expect(kills).toBeGreaterThanOrEqual(3);
    expect(workersSeen).toBe(3);
    expect(lost).toBe(0);
    // A slot that is killed may have done its task and not told yet; it begins no other before.
    expect(duplicates).toBeLessThanOrEqual(kills * PLAN.slotsPerWorker);
    // The kills did hit tasks that ran, and all of them ended well.
    expect(stats.totals.crashed).toBeGreaterThan(0);
    expect(stats.counts).toMatchObject({
      completed: PLAN.tasks,
      failed: 0,
      cancelled: 0,
      waiting: 0,
      active: 0,
    });
    expect(stats.totals.submitted).toBe(PLAN.tasks);
  }, 180_000);
});
