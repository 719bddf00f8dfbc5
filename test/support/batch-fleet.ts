// Workers that run tasks which do harm, and what tells how often each had its effect.
import { expect, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { fleetOn } from "../../src/automation/fleet.ts";
import { defineQueue } from "../../src/contracts/queue.ts";
import { SILENT } from "../../src/internal/log.ts";
import type { QueueHandle } from "../../src/primitives/queue.ts";
import type { TaskRecord } from "../../src/protocol/task.ts";
import { healFleet, type HealFleet, type Line } from "./heal-fleet.ts";
import { openPlace, type Place } from "./places.ts";

const Payload = z.object({ do: z.string(), n: z.number().default(0) });
export const JOB = defineQueue("job", { payload: Payload });

/** One task does what its payload says. Its effect is a line in the ledger, written at its end. */
const AUTOMATION = `
  import { defineBatch } from "fleet-framework";
  import { z } from "zod";
  import { note } from "./tools.ts";

  export default defineBatch("job", {
    tasks: {
      payload: z.object({ do: z.string(), n: z.number().default(0) }),
      timeoutSeconds: 60,
      backoff: { baseSeconds: 0.1, capSeconds: 0.5 },
    },
    async runOne(task, ctx) {
      const about = { task: task.id, attempt: task.attempt, crashes: task.crashes };
      note(ctx, "begin", about);
      const { do: what, n } = task.payload;
      if (what === "abort") process.abort();
      if (what === "exit") process.exit(0);
      // Long after it has begun, and while others begin.
      if (what === "late abort") {
        await new Promise((resolve) => setTimeout(resolve, n * 1000));
        process.abort();
      }
      if (what === "die once" && task.crashes === 0) process.kill(process.pid, "SIGKILL");
      if (what === "hang") {
        ctx.signal.addEventListener("abort", () => note(ctx, "told", { ...about, reason: ctx.signal.reason }));
        await new Promise(() => undefined);
      }
      if (what === "busy") for (const end = Date.now() + n * 1000; Date.now() < end;);
      if (what === "sleep") {
        await ctx.sleep(n);
        if (ctx.signal.aborted) {
          note(ctx, "told", { ...about, reason: ctx.signal.reason });
          ctx.signal.throwIfAborted();
        }
      }
      // However long somebody waits for it to end.
      if (what === "deaf once" && task.interruptions === 0) await new Promise((resolve) => setTimeout(resolve, 600_000));
      // What goes on as if nothing had happened.
      if (what === "wait") await new Promise((resolve) => setTimeout(resolve, n * 1000));
      note(ctx, "effect", about);
      return { worker: ctx.worker, pid: process.pid };
    },
  });
`;

export interface BatchFleet extends HealFleet {
  readonly queue: QueueHandle<typeof Payload>;
  /** How often each of these tasks had its effect. */
  effects(ids: readonly string[]): number[];
  record(id: string): Promise<TaskRecord | undefined>;
  /** Waits until these tasks have ended. */
  ended(ids: readonly string[], ms?: number): Promise<TaskRecord[]>;
  /** The first line of this kind about a task. */
  untilTask(id: string, what: string, since?: number): Promise<Line>;
}

/** A project with the batch automation `job`, as many slots as said. */
export async function batchFleet(place: Place, slots: number): Promise<BatchFleet> {
  const fleet = await healFleet(place, {
    "job.ts": AUTOMATION,
    "fleet.config.ts": `export default { automations: ["./job.ts"], deploy: { job: { slots: ${slots} } } };`,
  });
  const handles = fleetOn(await openPlace({ url: fleet.url, namespace: fleet.store.namespace }), {
    log: SILENT,
  });
  onTestFinished(() => handles.close());
  const record = (id: string) => fleet.store.queues.get({ queue: "job", id });
  return {
    ...fleet,
    queue: handles.queue(JOB),
    effects: (ids) => {
      const count = new Map<unknown, number>();
      for (const line of fleet.lines("job", "effect"))
        count.set(line["task"], (count.get(line["task"]) ?? 0) + 1);
      return ids.map((id) => count.get(id) ?? 0);
    },
    record,
    ended: (ids, ms = 90_000) =>
      vi.waitFor(
        async () => {
          const records = await Promise.all(ids.map(record));
          const open = records.filter((one) => one?.finishedAt === null || one === undefined);
          expect(open.map((one) => `${one?.id} ${one?.state}`)).toEqual([]);
          return records as TaskRecord[];
        },
        { timeout: ms, interval: 100 },
      ),
    untilTask: (id, what, since = 0) =>
      fleet.untilLine((line) => line["task"] === id && line.what === what, since),
  };
}
