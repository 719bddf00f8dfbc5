// P8: from a submission to the first line of its handler, in a worker that was idle.
import { openFleet } from "../../src/index.ts";
import { defineQueue } from "../../src/contracts/queue.ts";
import { z } from "zod";
import { startHelper } from "../helper-process.ts";
import { now } from "../payload.ts";
import { config, makeProject } from "../project.ts";
import { line, type Line } from "../result.ts";
import { interleave, pause } from "../rounds.ts";
import { median, percentile } from "../stats.ts";
import type { Bench } from "../suite.ts";
import { bullQueue } from "./bull.ts";

const PAUSE_MS = 5;
const QUEUE = defineQueue("stamped", { payload: z.object({ sent: z.string() }), result: z.number() });

/** Answers how old each task is when its handler begins. */
const STAMPED = `import { defineBatch } from "fleet-framework";
import { z } from "zod";

export default defineBatch("stamped", {
  tasks: { payload: z.object({ sent: z.string() }), result: z.number() },
  async runOne(task) {
    return Number(process.hrtime.bigint() - BigInt(task.payload.sent)) / 1000;
  },
});
`;

export async function startLatency({ redisUrl, rounds, quick }: Bench): Promise<Line[]> {
  const count = quick ? 40 : 300;
  const store = `${redisUrl}/10`;
  const bullUrl = `${redisUrl}/11`;
  const fleet = await openFleet({ store });
  const queue = fleet.queue(QUEUE);
  const project = makeProject({ "stamped.ts": STAMPED, "fleet.config.ts": config("stamped", 1) });
  project.fleet("worker", "--store", store, "--id", "w");
  await (await queue.submit({ sent: now() })).result({ waitSeconds: 30 });
  const bull = bullQueue(bullUrl, "stamped");
  const helper = startHelper();
  await helper.call("runBull", { redisUrl: bullUrl, queue: "stamped", concurrency: 1, note: true });
  await pause(200);

  const tails = { ours: [] as number[], theirs: [] as number[] };
  const [ours = [], theirs = []] = await interleave(rounds, [
    async () => {
      const handles = [];
      for (let at = 0; at < count; at++) {
        await pause(PAUSE_MS);
        handles.push(await queue.submit({ sent: now() }));
      }
      const ages = await Promise.all(handles.map((handle) => handle.result({ waitSeconds: 10 })));
      tails.ours.push(percentile(ages, 0.99));
      return median(ages);
    },
    async () => {
      await helper.call("takeAges", {});
      for (let at = 0; at < count; at++) {
        await pause(PAUSE_MS);
        await bull.add("stamped", { sent: now() } as never);
      }
      await pause(100);
      const ages = await helper.call("takeAges", {});
      if (ages.length !== count) throw new Error(`${count} jobs were added and ${ages.length} ran`);
      tails.theirs.push(percentile(ages, 0.99));
      return median(ages);
    },
  ]);
  helper.stop();
  await bull.close();
  await project.close();
  await fleet.close();
  const row = "P8";
  const what = "submission to the first line of its handler, idle worker";
  return [
    line({
      row,
      what: `${what}, p50`,
      ours: { label: "fleet", unit: "µs", rounds: ours },
      theirs: { label: "BullMQ", unit: "µs", rounds: theirs },
      target: { is: "at most", value: 0.35 },
    }),
    line({
      row,
      what: `${what}, p99`,
      ours: { label: "fleet", unit: "µs", rounds: tails.ours.slice(1) },
      theirs: { label: "BullMQ", unit: "µs", rounds: tails.theirs.slice(1) },
      target: { is: "at most", value: 0.5 },
    }),
  ];
}
