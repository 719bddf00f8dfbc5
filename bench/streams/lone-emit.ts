// P2: one emit at a time, each awaited.
import { openFleet } from "../../src/index.ts";
import { handMadeEntry, PINGS, samplePing } from "../payload.ts";
import { rawClient } from "../redis.ts";
import { line, type Line } from "../result.ts";
import { interleave, oneByOne } from "../rounds.ts";
import { median } from "../stats.ts";
import type { Bench } from "../suite.ts";

const RAW_KEY = "bench:lone";

export async function loneEmit({ redisUrl, rounds, quick }: Bench): Promise<Line[]> {
  const count = quick ? 300 : 3000;
  const fleet = await openFleet({ store: redisUrl, namespace: "lone" });
  const stream = fleet.stream(PINGS);
  const client = await rawClient(redisUrl);
  let index = 0;
  const [ours = [], theirs = []] = await interleave(rounds, [
    async () => median(await oneByOne(count, () => stream.push(samplePing(++index)))),
    async () => {
      await client.del(RAW_KEY);
      const zadd = () => {
        const entry = { score: ++index, value: handMadeEntry(samplePing(index)) };
        return client.zAdd(RAW_KEY, entry);
      };
      return median(await oneByOne(count, zadd));
    },
  ]);
  await client.del(RAW_KEY);
  client.destroy();
  await fleet.close();
  return [
    line({
      row: "P2",
      what: "one emit alone, awaited, p50, Redis",
      ours: { label: "fleet emit", unit: "µs", rounds: ours },
      theirs: { label: "@redis/client ZADD", unit: "µs", rounds: theirs },
      target: { is: "at most", value: 1.35 },
    }),
  ];
}
