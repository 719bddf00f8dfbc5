// P3: from a push to the payload in the hands of a consumer that waits in another process; and P11's second half: from publish to handler.
import { join } from "node:path";
import { openFleet } from "../../src/index.ts";
import { type Helper, startHelper } from "../helper-process.ts";
import { now, STAMPS } from "../payload.ts";
import { rawClient } from "../redis.ts";
import { line, type Line } from "../result.ts";
import { interleave, pause } from "../rounds.ts";
import { median, percentile } from "../stats.ts";
import type { Bench } from "../suite.ts";

const PAUSE_MS = 5;
const TOPIC = "bench.stamp";
const CHANNEL = "bench:stamp";

export async function wakeUp({ redisUrl, folder, rounds, quick }: Bench): Promise<Line[]> {
  const count = quick ? 40 : 300;
  const store = `sqlite:${join(folder, "wake-up.db")}`;
  const fleet = await openFleet({ store: redisUrl });
  const embedded = await openFleet({ store });
  const client = await rawClient(redisUrl);
  const [onRedis, onSqlite, onEvents, onRaw, pinger] = Array.from({ length: 5 }, startHelper) as Five;
  await onRedis.call("consumeStamps", { store: redisUrl });
  await onSqlite.call("consumeStamps", { store });
  await onEvents.call("subscribeEvents", { store: redisUrl, topic: TOPIC });
  await onRaw.call("subscribeRaw", { redisUrl, channel: CHANNEL });
  await pause(200);

  const tails: number[] = [];
  const redisStream = fleet.stream(STAMPS);
  const sqliteStream = embedded.stream(STAMPS);
  const [pushes = [], pings = [], sqlite = [], events = [], raw = []] = await interleave(rounds, [
    async () => {
      const ages = await paced(onRedis, count, () => redisStream.push({ sent: now() }));
      tails.push(percentile(ages, 0.99));
      return median(ages);
    },
    async () => median(await pinger.call("ping", { redisUrl, count, pauseMs: PAUSE_MS })),
    async () => median(await paced(onSqlite, count, () => sqliteStream.push({ sent: now() }))),
    async () => median(await paced(onEvents, count, () => fleet.events.publish(TOPIC, { sent: now() }))),
    async () =>
      median(await paced(onRaw, count, () => client.publish(CHANNEL, JSON.stringify({ sent: now() })))),
  ]);
  for (const helper of [onRedis, onSqlite, onEvents, onRaw, pinger]) helper.stop();
  client.destroy();
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
    line({
      row: "P11",
      what: "publish to handler in another process, p50, Redis",
      ours: { label: "fleet event", unit: "µs", rounds: events },
      theirs: { label: "@redis/client publish and subscribe", unit: "µs", rounds: raw },
      target: { is: "at most", value: 1.3 },
    }),
  ];
}

type Five = [Helper, Helper, Helper, Helper, Helper];

/** Sends `count` stamps with pauses, so that the receiver is idle each time, and answers how old they were on arrival. */
async function paced(helper: Helper, count: number, send: () => Promise<unknown>): Promise<number[]> {
  await helper.call("takeAges", {});
  for (let i = 0; i < count; i++) {
    await pause(PAUSE_MS);
    await send();
  }
  await pause(50);
  const ages = await helper.call("takeAges", {});
  if (ages.length !== count) throw new Error(`${count} stamps were sent and ${ages.length} arrived`);
  return ages;
}
