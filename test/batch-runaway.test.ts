// Short (`npm test`): a task that submits two of its kind, on both stores: its queue stays within its length.
import { expect, it, vi } from "vitest";
import { z } from "zod";
import { defineBatch } from "../src/automation/definition-batch.ts";
import { defineQueue } from "../src/contracts/queue.ts";
import { isFleetError } from "../src/errors.ts";
import { inlineWorker, KINDS } from "./support/batch-worker.ts";

const MOST = 200;
/** What a process may have claimed ahead and give back, whatever the length, and what runs. */
const CLAIMED = 128 + 3;

it.each(KINDS)(
  "tasks that beget tasks are refused at the queue's length, with a typed error, on %s",
  async (kind) => {
    const queue = defineQueue("breeder", { payload: z.number(), maxLength: MOST, maxAttempts: 1 });
    let isBreeding = true;
    const refusals: unknown[] = [];
    let asked = 0;
    const breeder = defineBatch("breeder", {
      tasks: queue,
      async runOne(task, ctx) {
        if (!isBreeding) return;
        for (let i = 0; i < 2; i++, asked++)
          await ctx.submit(queue, task.payload + 1).catch((error: unknown) => refusals.push(error));
      },
    });
    const { fleet, store } = await inlineWorker(kind, [[breeder, 3]]);
    const lengths: number[] = [];
    await fleet.submit(queue, 0);
    await vi.waitFor(
      async () => {
        lengths.push(await fleet.queue(queue).length());
        // Without a limit each run would leave one more behind: 1000 by now.
        expect(asked).toBeGreaterThan(2000);
      },
      { timeout: 20_000, interval: 5 },
    );
    expect(refusals.every((error) => isFleetError(error, "FLEET_QUEUE_FULL"))).toBe(true);
    expect(Math.max(...lengths)).toBeGreaterThan(MOST / 2);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(MOST + CLAIMED);
    expect(refusals.length).toBeGreaterThan(500);
    // None of those that were taken has failed for it, and the queue empties once they are reasonable.
    isBreeding = false;
    await vi.waitFor(
      async () =>
        expect((await store.queues.stats({ queue: "breeder" }))?.counts).toMatchObject({
          waiting: 0,
          active: 0,
          failed: 0,
        }),
      { timeout: 20_000, interval: 20 },
    );
  },
);
