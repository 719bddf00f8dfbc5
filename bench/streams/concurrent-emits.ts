// P1: 256 callers, each of which waits for its emit and then emits again.
import { Redis } from "ioredis";
import { openFleet } from "../../src/index.ts";
import { handMadeEntry, PINGS, samplePing } from "../payload.ts";
import { rawClient } from "../redis.ts";
import { line, type Line } from "../result.ts";
import { inFlight, interleave } from "../rounds.ts";
import type { Bench } from "../suite.ts";

const CALLERS = 256;
const RAW_KEY = "bench:concurrent";

export async function concurrentEmits({ redisUrl, rounds, quick }: Bench): Promise<Line[]> {
  const ms = quick ? 200 : 1000;
  const fleet = await openFleet({ store: redisUrl, namespace: "concurrent" });
  const stream = fleet.stream(PINGS);
  const client = await rawClient(redisUrl);
  const timed = await rawClient(redisUrl, { timed: true });
  const plain = new Redis(redisUrl);
  const pipelining = new Redis(redisUrl, { enableAutoPipelining: true });
  let index = 0;

  /** Bare ZADDs grow the set, which nothing prunes: each round starts with an empty one. */
  const raw = async (zadd: (score: number, entry: string) => Promise<unknown>) => {
    await client.del(RAW_KEY);
    return inFlight(CALLERS, ms, () => zadd(++index, handMadeEntry(samplePing(index))));
  };
  const [ours = [], bare = [], auto = [], io = [], byDefault = []] = await interleave(rounds, [
    () => inFlight(CALLERS, ms, () => stream.push(samplePing(++index))),
    () => raw((score, value) => client.zAdd(RAW_KEY, { score, value })),
    () => raw((score, value) => pipelining.zadd(RAW_KEY, score, value)),
    () => raw((score, value) => plain.zadd(RAW_KEY, score, value)),
    () => raw((score, value) => timed.zAdd(RAW_KEY, { score, value })),
  ]);
  await client.del(RAW_KEY);
  client.destroy();
  timed.destroy();
  plain.disconnect();
  pipelining.disconnect();
  await fleet.close();

  const emits = { label: "fleet: validated, pruned, acknowledged", unit: "emits/s", rounds: ours };
  const row = "P1";
  return [
    line({
      row,
      what: `${CALLERS} emits in flight, Redis, against the same client's bare ZADD per emit`,
      ours: emits,
      theirs: { label: "@redis/client ZADD", unit: "emits/s", rounds: bare },
      target: { is: "at least", value: 1.2 },
    }),
    line({
      row,
      what: `${CALLERS} emits in flight, Redis, against ioredis' pipelined ZADD per emit`,
      ours: emits,
      theirs: { label: "ioredis ZADD, autopipelining", unit: "emits/s", rounds: auto },
      target: { is: "at least", value: 3.5 },
    }),
    line({
      row,
      what: `${CALLERS} emits in flight, Redis, against ioredis' plain ZADD per emit`,
      ours: emits,
      theirs: { label: "ioredis ZADD", unit: "emits/s", rounds: io },
    }),
    line({
      row,
      what: `${CALLERS} emits in flight, Redis, against ZADD per emit of the client as it is by default`,
      ours: emits,
      theirs: { label: "@redis/client ZADD, a timer per command", unit: "emits/s", rounds: byDefault },
    }),
  ];
}
