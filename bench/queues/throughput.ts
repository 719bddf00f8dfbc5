// P7: tasks that do nothing, through one process with 1, 10 and 100 slots, results kept.
import { openFleet, openStore } from "../../src/index.ts";
import { defineQueue } from "../../src/contracts/queue.ts";
import { startHelper } from "../helper-process.ts";
import { Ping, samplePing } from "../payload.ts";
import { config, makeProject } from "../project.ts";
import { rawClient, type RawClient } from "../redis.ts";
import { line, type Line } from "../result.ts";
import { interleave, pause } from "../rounds.ts";
import type { Bench } from "../suite.ts";
import { bullQueue, checkedPing } from "./bull.ts";

const SLOTS = [
  { slots: 1, target: 2, tasks: { ours: 6000, theirs: 3000 } },
  { slots: 10, target: 5, tasks: { ours: 30_000, theirs: 8000 } },
  { slots: 100, target: 8, tasks: { ours: 100_000, theirs: 15_000 } },
] as const;
const CPU_TARGET = 0.3;
const QUEUE = defineQueue("noop", { payload: Ping });

/** Does nothing and keeps a small result; as many slots as the config says. */
const NOOP = `import { defineBatch } from "fleet-framework";
import { z } from "zod";

const Ping = z.object({ url: z.url(), ok: z.boolean(), ms: z.number(), ts: z.number() });

export default defineBatch("noop", {
  tasks: { payload: Ping, result: z.object({ ok: z.boolean() }) },
  async runOne(task) {
    return { ok: task.payload.ok };
  },
});
`;

interface Measured {
  perSecond: number;
  /** Of the server, per task. */
  cpuMicros: number;
}

export async function throughput(bench: Bench): Promise<Line[]> {
  const lines: Line[] = [];
  for (const { slots, target, tasks } of SLOTS) lines.push(...(await withSlots(bench, slots, target, tasks)));
  return lines;
}

async function withSlots(
  { redisUrl, rounds, quick }: Bench,
  slots: number,
  target: number,
  tasks: { ours: number; theirs: number },
): Promise<Line[]> {
  const count = { ours: quick ? 2000 : tasks.ours, theirs: quick ? 1000 : tasks.theirs };
  const ours: Measured[] = [];
  const theirs: Measured[] = [];
  await interleave(Math.max(1, Math.ceil(rounds / 2)), [
    async () => keep(ours, await fleetSide(`${redisUrl}/8`, slots, count.ours)),
    async () => keep(theirs, await bullSide(`${redisUrl}/9`, slots, count.theirs)),
  ]);
  // The first of each only warmed up.
  const counted = { ours: ours.slice(1), theirs: theirs.slice(1) };
  const figures = (side: Measured[], of: keyof Measured) => side.map((one) => one[of]);
  return [
    line({
      row: "P7",
      what: `no-op task, ${slots} ${slots === 1 ? "slot" : "slots"} in one process`,
      ours: { label: "fleet", unit: "tasks/s", rounds: figures(counted.ours, "perSecond") },
      theirs: { label: "BullMQ", unit: "tasks/s", rounds: figures(counted.theirs, "perSecond") },
      target: { is: "at least", value: target },
    }),
    line({
      row: "P7",
      what: "the same: CPU of the server per task",
      ours: { label: "fleet", unit: "µs", rounds: figures(counted.ours, "cpuMicros") },
      theirs: { label: "BullMQ", unit: "µs", rounds: figures(counted.theirs, "cpuMicros") },
      target: { is: "at most", value: CPU_TARGET },
    }),
  ];
}

function keep(list: Measured[], measured: Measured): number {
  list.push(measured);
  return measured.perSecond;
}

async function fleetSide(store: string, slots: number, tasks: number): Promise<Measured> {
  const client = await rawClient(store);
  await client.sendCommand(["FLUSHDB"]);
  const fleet = await openFleet({ store });
  const queue = fleet.queue(QUEUE);
  for (let at = 0; at < tasks; at += 1000)
    await queue.submitMany(
      Array.from({ length: Math.min(1000, tasks - at) }, (_, index) => samplePing(at + index)),
    );
  const port = await openStore(store);
  const project = makeProject({ "noop.ts": NOOP, "fleet.config.ts": config("noop", slots) });
  project.fleet("worker", "--store", store, "--id", "w");
  const measured = await whileDone(
    client,
    tasks,
    async () => (await port.queues.stats({ queue: "noop" }))?.totals.completed ?? 0,
  );
  await project.close();
  await port.close();
  await fleet.close();
  await client.sendCommand(["FLUSHDB"]);
  client.destroy();
  return measured;
}

async function bullSide(redisUrl: string, slots: number, tasks: number): Promise<Measured> {
  const client = await rawClient(redisUrl);
  await client.sendCommand(["FLUSHDB"]);
  const queue = bullQueue(redisUrl, "noop");
  for (let at = 0; at < tasks; at += 1000) {
    await queue.addBulk(
      Array.from({ length: Math.min(1000, tasks - at) }, (_, index) => ({
        name: "ping",
        data: checkedPing(at + index),
      })),
    );
  }
  const helper = startHelper();
  await helper.call("runBull", { redisUrl, queue: "noop", concurrency: slots, note: false });
  // What is kept of the finished ones is bounded: count what is left instead.
  const measured = await whileDone(
    client,
    tasks,
    async () => tasks - (await queue.getJobCountByTypes("waiting", "active")),
  );
  helper.stop();
  await queue.close();
  await client.sendCommand(["FLUSHDB"]);
  client.destroy();
  return measured;
}

/** The rate between a tenth and nine tenths of the tasks: neither start nor end counts. */
async function whileDone(client: RawClient, tasks: number, done: () => Promise<number>): Promise<Measured> {
  const until = async (least: number) => {
    for (;;) {
      const found = await done();
      if (found >= least) return { done: found, at: performance.now(), cpu: await serverCpu(client) };
      await pause(5);
    }
  };
  const first = await until(tasks * 0.1);
  const last = await until(tasks * 0.9);
  await until(tasks);
  const count = last.done - first.done;
  return {
    perSecond: (count * 1000) / (last.at - first.at),
    cpuMicros: ((last.cpu - first.cpu) * 1_000_000) / count,
  };
}

/** CPU time that the server has used, in seconds. */
async function serverCpu(client: RawClient): Promise<number> {
  const info = (await client.sendCommand(["INFO", "cpu"])) as unknown as string;
  const seconds = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(info)?.[1]);
  return seconds("used_cpu_user") + seconds("used_cpu_sys");
}
