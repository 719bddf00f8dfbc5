// P13: what a claim with its release and a put cost when the pool holds little or much; ten items match whatever its size.
import { join } from "node:path";
import { openFleet } from "../../src/index.ts";
import { flatLine } from "../flat.ts";
import type { Line } from "../result.ts";
import { interleave } from "../rounds.ts";
import { median } from "../stats.ts";
import type { Bench } from "../suite.ts";
import { fill, session, sessionPool } from "./sessions.ts";

export async function size(bench: Bench): Promise<Line[]> {
  const { redisUrl, folder, quick } = bench;
  const sizes = quick ? [100, 10_000] : [100, 1000, 10_000, 100_000, 1_000_000];
  const onFile = quick ? [100, 10_000] : [100, 1000, 10_000, 100_000];
  return [
    ...(await onStore(bench, "Redis", `${redisUrl}/3`, sizes)),
    ...(await onStore(bench, "SQLite", `sqlite:${join(folder, "pools.db")}`, onFile)),
  ];
}

async function onStore(
  { rounds, quick }: Bench,
  name: string,
  store: string,
  sizes: readonly number[],
): Promise<Line[]> {
  const repeats = quick ? 50 : 300;
  const fleet = await openFleet({ store });
  const perSize = () => new Map<number, number[]>(sizes.map((count) => [count, []]));
  const claims = { tagged: perSize(), any: perSize() };
  const sides = [];
  for (const count of sizes) {
    const contract = sessionPool(`size-${count}`);
    const pool = fleet.pool(contract);
    const every = count / 10;
    const tags = (i: number) => ({
      site: i % every === 0 ? "rare" : `site-${i % 20}`,
      region: `r${i % 5}`,
      tier: i % 2 ? "a" : "b",
    });
    await fill(fleet, contract, count, tags);
    const cycle = async (selection: Pick<typeof pool, "claim">) => {
      const started = performance.now();
      const lease = await selection.claim();
      if (lease === null) throw new Error("nothing was free");
      await lease.release();
      return (performance.now() - started) * 1000;
    };
    const rare = pool.where({ site: "rare" });
    sides.push(async () => {
      const tagged: number[] = [];
      const any: number[] = [];
      const puts: number[] = [];
      for (let at = 0; at < repeats; at++) {
        tagged.push(await cycle(rare));
        any.push(await cycle(pool));
        const started = performance.now();
        const id = await pool.put({ payload: session(at), tags: tags(1) });
        puts.push((performance.now() - started) * 1000);
        // The size stays.
        await pool.remove(id);
      }
      claims.tagged.get(count)?.push(median(tagged));
      claims.any.get(count)?.push(median(any));
      return median(puts);
    });
  }
  const puts = await interleave(rounds, sides);
  await fleet.close();
  // The first round only warmed up.
  const counted = (figures: Map<number, number[]>) => [...figures.values()].map((one) => one.slice(1));
  return [
    flatLine(`claim by a tag, and release, ${name}, by number of items`, sizes, counted(claims.tagged)),
    flatLine(`claim of any item, and release, ${name}, by number of items`, sizes, counted(claims.any)),
    flatLine(`put, ${name}, by number of items`, sizes, puts),
  ];
}
