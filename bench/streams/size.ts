// P13: what a push and a pop cost when the stream holds little or much.
import { join } from "node:path";
import { openFleet } from "../../src/index.ts";
import { defineStream } from "../../src/contracts/stream.ts";
import { Ping, samplePing } from "../payload.ts";
import { flatLine } from "../flat.ts";
import type { Line } from "../result.ts";
import { interleave } from "../rounds.ts";
import { median } from "../stats.ts";
import type { Bench } from "../suite.ts";

const BATCH = 100;

export async function size(bench: Bench): Promise<Line[]> {
  const { redisUrl, folder } = bench;
  return [
    ...(await onStore(bench, "Redis", redisUrl)),
    ...(await onStore(bench, "SQLite", `sqlite:${join(folder, "size.db")}`)),
  ];
}

async function onStore({ rounds, quick }: Bench, name: string, store: string): Promise<Line[]> {
  const sizes = quick ? [100, 10_000] : [100, 1000, 10_000, 100_000];
  const repeats = quick ? 20 : 100;
  const fleet = await openFleet({ store, ...(name === "Redis" ? { namespace: "size" } : {}) });
  const pushes = new Map<number, number[]>(sizes.map((length) => [length, []]));
  const sides = [];
  for (const length of sizes) {
    const stream = fleet.stream(defineStream(`size-${length}`, Ping, { maxLength: 200_000 }));
    const push = (count: number) =>
      Promise.all(Array.from({ length: count }, (_, index) => stream.push(samplePing(index))));
    for (let filled = 0; filled < length; filled += 1000) await push(Math.min(1000, length - filled));
    // Each turn takes as many as it puts in, so the length stays.
    sides.push(async () => {
      const pushed: number[] = [];
      const popped: number[] = [];
      for (let turn = 0; turn < repeats; turn++) {
        const started = performance.now();
        await push(BATCH);
        const between = performance.now();
        await stream.pop({ n: BATCH });
        pushed.push((between - started) * 1000);
        popped.push((performance.now() - between) * 1000);
      }
      pushes.get(length)?.push(median(pushed));
      return median(popped);
    });
  }
  const pops = await interleave(rounds, sides);
  await fleet.close();
  const pushed = [...pushes.values()].map((figures) => figures.slice(1));
  return [
    flatLine(`push of ${BATCH}, ${name}, by length`, sizes, pushed),
    flatLine(`pop of ${BATCH}, ${name}, by length`, sizes, pops),
  ];
}
