// Short (`npm test`): queues with a rate limit, by the store's times of its grants and of the claims. 20 s of it in test/soak/.
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineBatch } from "../src/automation/definition-batch.ts";
import { inlineWorker, KINDS } from "./support/batch-worker.ts";
import { limitedQueue } from "./support/limited-queue.ts";
import { PLACES } from "./support/places.ts";

describe.each(PLACES)("on $name", (place) => {
  test("four workers start no more than the limit allows, and all of it", async () => {
    const queue = await limitedQueue(place, { limit: 50, workers: 4, slots: 16 });
    const { most, used, starts, unpermitted, each } = await queue.run(150);
    expect(most).toBeLessThanOrEqual(50);
    expect(unpermitted).toBe(0);
    expect(starts).toBe(150);
    expect(used).toBeGreaterThanOrEqual(0.8);
    expect(each.filter((count) => count > 0)).toHaveLength(4);
    // What was reserved for tasks that others have run is not lost: as if it had never been taken.
    expect(await queue.longestLine()).toBeLessThanOrEqual(500);
  }, 60_000);

  test("the command line says that tasks wait for a permit", async () => {
    const queue = await limitedQueue(place, { limit: 1, perSeconds: 3600, workers: 1, slots: 2 });
    await queue.untilOne(3);
    expect(await queue.json("explain", "job")).toMatchObject({
      findings: expect.arrayContaining([
        { code: "rate-limit", message: expect.stringContaining('rate limit "api" (1 per 3600 s)') },
      ]),
    });
    expect(await queue.json("limit", "ls")).toMatchObject([{ name: "api", key: "", queues: ["job"] }]);
  }, 60_000);
});

describe.each(KINDS)("runMany on %s", (kind) => {
  test("each task of a batch has its permit", async () => {
    const sizes: number[] = [];
    const job = defineBatch("job", {
      tasks: { payload: z.number(), rateLimit: { limit: 20, perSeconds: 1 } },
      size: 5,
      waitSeconds: 0.2,
      runMany(tasks) {
        sizes.push(tasks.length);
        return tasks.map(() => null);
      },
    });
    const { fleet, store } = await inlineWorker(kind, [[job, 2]]);
    const queue = fleet.queue(job.tasks);
    const submitted = await queue.submitMany(Array.from({ length: 16 }, (_, n) => n));
    await Promise.all(submitted.map((task) => task.result({ waitSeconds: 20 })));
    const records = await Promise.all(submitted.map(({ id }) => store.queues.get({ queue: "job", id })));
    const starts = records.map((one) => one?.startedAt ?? 0).toSorted((a, b) => a - b);
    // 15 intervals of 50 ms, the first of which may begin late by as much as a permit holds.
    expect((starts.at(-1) as number) - (starts[0] as number)).toBeGreaterThanOrEqual(15 * 50 - 100);
    expect(Math.max(...sizes)).toBeGreaterThan(1);
    expect(records.map((one) => one?.attempts)).toEqual(Array(16).fill(1));
  }, 30_000);
});
