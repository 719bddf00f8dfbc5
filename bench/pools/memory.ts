// P10: what an item takes in Redis, by what the server uses before and after.
import { openFleet } from "../../src/index.ts";
import { rawClient, type RawClient } from "../redis.ts";
import { line, type Line } from "../result.ts";
import type { Bench } from "../suite.ts";
import { fill, session, sessionPool, siteOf } from "./sessions.ts";

const TARGET = 600;

export async function memory({ redisUrl, quick }: Bench): Promise<Line[]> {
  const items = quick ? 20_000 : 100_000;
  const store = `${redisUrl}/2`;
  const client = await rawClient(store);
  const fleet = await openFleet({ store });
  // Scripts, connections and the pool itself are there before it is looked at.
  const pool = sessionPool("memory");
  const tags = (i: number) => ({ site: siteOf(i), region: `r${i % 5}`, tier: i % 2 ? "free" : "paid" });
  await fill(fleet, sessionPool("before"), 1, tags);
  const before = await used(client);
  await fill(fleet, pool, items, tags);
  const filled = ((await used(client)) - before) / items;
  // Each was claimed once: what is kept of its use counts too.
  for (let claimed = 0; claimed < items; claimed += 500) {
    const leases = await fleet.pool(pool).claimMany(500);
    if (leases === null) throw new Error("they were all put");
    await Promise.all(leases.map((lease) => lease.release()));
  }
  const after = ((await used(client)) - before) / items;
  await client.sendCommand(["FLUSHDB"]);
  client.destroy();
  await fleet.close();
  const bytes = JSON.stringify(session(0)).length;
  const figures = (label: string, figure: number) => ({ label, unit: "bytes", rounds: [figure] });
  return [
    line({
      row: "P10",
      what: `memory per item, ${items.toLocaleString("en-US")} items, payload of ${bytes} bytes, three tags, Redis`,
      ours: figures("used_memory per item", filled),
      target: { is: "at most", value: TARGET },
    }),
    line({
      row: "P10",
      what: "the same, once each of them has been used",
      ours: figures("used_memory per item", after),
    }),
  ];
}

/** Growth of hash tables goes on after the call that began it; what it has freed is not counted any more. */
async function used(client: RawClient): Promise<number> {
  let last = Number.NaN;
  for (let looks = 0; looks < 50; looks++) {
    const info = (await client.sendCommand(["INFO", "memory"])) as unknown as string;
    const now = Number(/^used_memory:(\d+)/m.exec(info)?.[1]);
    if (Math.abs(now - last) < 10_000) return now;
    last = now;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return last;
}
