// P13: what a submission and a turn (100 ends and 100 new claims) cost when little or much waits, and when few or many keys do.
import { join } from "node:path";
import { openStore } from "../../src/index.ts";
import { defineQueue } from "../../src/contracts/queue.ts";
import { settingsOf } from "../../src/primitives/queue-settings.ts";
import type { NewTask, Settlement } from "../../src/protocol/task.ts";
import { Ping, samplePing } from "../payload.ts";
import { flatLine } from "../flat.ts";
import type { Line } from "../result.ts";
import { interleave } from "../rounds.ts";
import { median } from "../stats.ts";
import type { Bench } from "../suite.ts";

const BATCH = 100;

export async function cost(bench: Bench): Promise<Line[]> {
  const { redisUrl, folder, quick } = bench;
  const depths = quick ? [100, 10_000] : [100, 1000, 10_000, 100_000, 1_000_000];
  const keys = quick ? [1, 1000] : [1, 100, 10_000];
  const lines: Line[] = [];
  for (const [name, url] of [
    ["Redis", `${redisUrl}/12`],
    ["SQLite", `sqlite:${join(folder, "cost.db")}`],
  ] as const) {
    lines.push(...(await onStore(bench, name, url, "waiting tasks", depths, () => undefined)));
    lines.push(
      ...(await onStore(
        bench,
        name,
        url,
        "keys, 10 000 waiting tasks",
        keys,
        (count, index) => `key-${index % count}`,
      )),
    );
  }
  return lines;
}

async function onStore(
  { rounds, quick }: Bench,
  name: string,
  url: string,
  what: string,
  sizes: readonly number[],
  keyOf: (size: number, index: number) => string | undefined,
): Promise<Line[]> {
  const repeats = quick ? 10 : 50;
  const store = await openStore(url);
  const submits = new Map<number, number[]>(sizes.map((size) => [size, []]));
  const sides = [];
  let index = 0;
  for (const size of sizes) {
    const queue = `cost-${what.startsWith("keys") ? "keys" : "depth"}-${size}`;
    const depth = what.startsWith("keys") ? 10_000 : size;
    await store.queues.declare({
      queue,
      settings: settingsOf(defineQueue(queue, { payload: Ping, keyConcurrency: 0 })),
      as: "owner",
    });
    const task = (): NewTask => {
      const key = keyOf(size, ++index);
      return {
        id: `${queue}-${index}`,
        payload: JSON.stringify(samplePing(index)),
        delayMs: 0,
        priority: 0,
        ...(key === undefined ? {} : { key }),
        maxAttempts: 5,
        timeoutMs: 0,
        ttlMs: 0,
      };
    };
    const submit = (count: number) =>
      store.queues.submit({ queue, lists: [Array.from({ length: count }, task)] });
    for (let filled = 0; filled < depth; filled += 500) await submit(Math.min(500, depth - filled));
    // Each turn ends as many as were submitted, so the depth stays.
    let settle: Settlement[] = [];
    sides.push(async () => {
      const submitted: number[] = [];
      const turned: number[] = [];
      for (let at = 0; at < repeats; at++) {
        const started = performance.now();
        await submit(BATCH);
        const between = performance.now();
        const turn = { queue, holder: "bench", worker: "bench", leaseMs: 60_000, settle, claim: BATCH };
        const { tasks } = await store.queues.turn(turn);
        submitted.push((between - started) * 1000);
        turned.push((performance.now() - between) * 1000);
        if (tasks.length !== BATCH) throw new Error(`${tasks.length} tasks were claimed instead of ${BATCH}`);
        settle = tasks.map(({ id, token }) => ({ id, token, outcome: "completed", result: "true" }));
      }
      submits.get(size)?.push(median(submitted));
      return median(turned);
    });
  }
  const turns = await interleave(rounds, sides);
  await store.close();
  const submitted = [...submits.values()].map((figures) => figures.slice(1));
  return [
    flatLine(`submission of ${BATCH}, ${name}, ${what}`, sizes, submitted),
    flatLine(`turn (${BATCH} ends, ${BATCH} claims), ${name}, ${what}`, sizes, turns),
  ];
}
