// P3: from a push to the payload in the hands of a consumer that waits in another process.
import { join } from "node:path";
import { openFleet } from "../../src/index.ts";
import { type Helper, startHelper } from "../helper-process.ts";
import { now, STAMPS } from "../payload.ts";
import { PAUSE_MS, paced } from "../paced.ts";
import { line, type Line } from "../result.ts";
import { interleave, pause } from "../rounds.ts";
import { median, percentile } from "../stats.ts";
import type { Bench } from "../suite.ts";

export async function wakeUp({ redisUrl, folder, rounds, quick }: Bench): Promise<Line[]> {
  const count = quick ? 40 : 300;
  const store = `sqlite:${join(folder, "wake-up.db")}`;
  const fleet = await openFleet({ store: redisUrl });
  const embedded = await openFleet({ store });
  const [onRedis, onSqlite, pinger] = Array.from({ length: 3 }, startHelper) as Three;
  await onRedis.call("consumeStamps", { store: redisUrl });
  await onSqlite.call("consumeStamps", { store });
  await pause(200);

  const tails: number[] = [];
  const redisStream = fleet.stream(STAMPS);
  const sqliteStream = embedded.stream(STAMPS);
  const [pushes = [], pings = [], sqlite = []] = await interleave(rounds, [
    async () => {
      const ages = await paced(onRedis, count, () => redisStream.push({ sent: now() }));
      tails.push(percentile(ages, 0.99));
      return median(ages);
    },
    async () => median(await pinger.call("ping", { redisUrl, count, pauseMs: PAUSE_MS })),
    async () => median(await paced(onSqlite, count, () => sqliteStream.push({ sent: now() }))),
  ]);
  for (const helper of [onRedis, onSqlite, pinger]) helper.stop();
  await fleet.close();
  await embedded.close();

  return [
    line({
      row: "P3",
      what: "push to payload in the hands of an idle consumer in another process, p50, Redis, with a hint",
      ours: { label: "fleet push to consumer", unit: "µs", rounds: pushes },
      theirs: { label: "@redis/client PING, idle connection", unit: "µs", rounds: pings },
      target: { is: "at most", value: 4 },
    }),
    line({
      row: "P3",
      what: "the same, p99",
      ours: { label: "fleet push to consumer", unit: "µs", rounds: tails.slice(1) },
    }),
    line({
      row: "P3",
      what: "the same, p50, SQLite",
      ours: { label: "fleet push to consumer", unit: "µs", rounds: sqlite },
      target: { is: "at most", value: 1000 },
    }),
  ];
}

type Three = [Helper, Helper, Helper];
