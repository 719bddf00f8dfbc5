// Long (`npm run soak`): a rate that four processes share, and one that four workers' tasks are started by, for 20 s each. A few seconds of
// both run in `npm test` (test/state-handles.test.ts, test/queues-rate-limits.test.ts).
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Children, prepareChildren } from "../support/children.ts";
import { measured } from "../support/heal-fleet.ts";
import { limitRace } from "../support/limit-race.ts";
import { limitedQueue } from "../support/limited-queue.ts";
import { PLACES } from "../support/places.ts";

let children: Children;
beforeAll(async () => {
  children = await prepareChildren();
});
afterAll(() => children.dispose());

describe.each(PLACES)("on $name", (place) => {
  it("50 per second by four processes: never more in any second, and at least 95 % of it", async () => {
    const { most, used, each } = await limitRace(children, place, { limit: 50, seconds: 20, processes: 4 });
    expect(most).toBeLessThanOrEqual(50);
    expect(used).toBeGreaterThanOrEqual(0.95);
    expect(Math.min(...each)).toBeGreaterThan(100);
  }, 120_000);

  it("a queue of 50 per second run by four workers: the same, and every start has its permit", async () => {
    const queue = await limitedQueue(place, { limit: 50, workers: 4, slots: 16 });
    const run = await queue.run(1000);
    measured(`a queue of 50 per second, ${place.name}`, JSON.stringify(run));
    expect(run.most).toBeLessThanOrEqual(50);
    expect(run.unpermitted).toBe(0);
    expect(run.used).toBeGreaterThanOrEqual(0.95);
    expect(Math.min(...run.each)).toBeGreaterThan(100);
  }, 120_000);
});
