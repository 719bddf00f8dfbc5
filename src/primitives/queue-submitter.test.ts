import { describe, expect, it } from "vitest";
import { defineQueue } from "../contracts/queue.ts";
import { z } from "zod";
import { FleetError } from "../errors.ts";
import type { NewTask } from "../protocol/task.ts";
import type { QueueStore } from "../store/queue-store.ts";
import { QueueSubmitter } from "./queue-submitter.ts";

const QUEUE = defineQueue("q", { payload: z.object({ n: z.number() }) });
const task = (n: number) => ({ id: `t-${n}`, payload: JSON.stringify({ n }) }) as NewTask;
const lost = () => new FleetError("FLEET_STORE_UNAVAILABLE", "lost", { retryable: true, outcome: "unknown" });

function submitterOn(submit: (ids: string[][]) => Promise<void>): QueueSubmitter {
  const store = {
    async submit({ lists }: { lists: readonly (readonly NewTask[])[] }) {
      await submit(lists.map((tasks) => tasks.map(({ id }) => id)));
      const given = lists.map((tasks) => ({
        outcome: "accepted",
        tasks: tasks.map(({ id }) => ({ id, outcome: "new" })),
      }));
      return { outcome: "done", lists: given };
    },
  } as unknown as QueueStore;
  return new QueueSubmitter(store, QUEUE);
}

describe("QueueSubmitter", () => {
  it("asks again after a lost answer whether each may still be sent; who may not holds up nobody", async () => {
    const calls: string[][][] = [];
    let over = false;
    const submitter = submitterOn(async (ids) => {
      calls.push(ids);
      if (calls.length > 1) return;
      over = true;
      throw lost();
    });
    const fence = () => {
      if (over) throw new FleetError("FLEET_LEASE_LOST", "over");
    };
    const results = await Promise.allSettled([
      submitter.submit([task(1)], fence),
      submitter.submit([task(2), task(3)]),
    ]);
    expect(calls).toEqual([[["t-1"], ["t-2", "t-3"]], [["t-2", "t-3"]]]);
    expect(results).toMatchObject([
      { status: "rejected", reason: { code: "FLEET_LEASE_LOST" } },
      { status: "fulfilled", value: [{ id: "t-2" }, { id: "t-3" }] },
    ]);
  });

  it("sends nothing where nobody may", async () => {
    let calls = 0;
    const submitter = submitterOn(async () => void (calls += 1));
    const fence = () => {
      throw new FleetError("FLEET_LEASE_LOST", "over");
    };
    await expect(submitter.submit([task(1)], fence)).rejects.toMatchObject({ code: "FLEET_LEASE_LOST" });
    expect(calls).toBe(0);
  });
});
