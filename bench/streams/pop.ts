// P4: taking a full stream in hundreds.
import { openFleet } from "../../src/index.ts";
import { PINGS, samplePing } from "../payload.ts";
import { rawClient } from "../redis.ts";
import { line, type Line } from "../result.ts";
import { interleave } from "../rounds.ts";
import type { Bench } from "../suite.ts";

const N = 100;
const FILLED = "bench:filled";
const RAW_KEY = "bench:pop";

export async function pop({ redisUrl, rounds, quick }: Bench): Promise<Line[]> {
  const entries = quick ? 2000 : 40_000;
  const namespace = "pop";
  const key = `${namespace}:stream:${PINGS.name}`;
  const fleet = await openFleet({ store: redisUrl, namespace });
  const stream = fleet.stream(PINGS);
  const client = await rawClient(redisUrl);
  await Promise.all(Array.from({ length: entries }, (_, index) => stream.push(samplePing(index))));
  await client.copy(key, FILLED);

  /** Entries per second until nothing is left of the same set of entries. */
  const drain = async (from: string, take: () => Promise<number>) => {
    await client.copy(FILLED, from, { REPLACE: true });
    const started = performance.now();
    let taken = 0;
    for (let found = await take(); found > 0; found = await take()) taken += found;
    if (taken !== entries) throw new Error(`${entries} entries were there and ${taken} came out`);
    return (taken * 1000) / (performance.now() - started);
  };
  const [ours = [], theirs = []] = await interleave(rounds, [
    () => drain(key, async () => (await stream.popEnvelopes({ n: N })).length),
    () =>
      drain(RAW_KEY, async () => {
        const found = await client.sendCommand<[string, number][]>(["ZPOPMIN", RAW_KEY, String(N)]);
        return found.map(([entry]) => JSON.parse(entry) as unknown).length;
      }),
  ]);
  await client.del(FILLED);
  client.destroy();
  await fleet.close();
  return [
    line({
      row: "P4",
      what: `pop of ${N}, parsed and validated, Redis, against raw ZPOPMIN ${N} and JSON.parse`,
      ours: { label: "fleet pop", unit: "entries/s", rounds: ours },
      theirs: { label: "@redis/client ZPOPMIN + JSON.parse", unit: "entries/s", rounds: theirs },
      target: { is: "at least", value: 0.8 },
    }),
  ];
}
