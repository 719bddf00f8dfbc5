// P11: from a publish to the handler of a subscriber in another process, both of them idle.
import { openFleet } from "../../src/index.ts";
import { startHelper } from "../helper-process.ts";
import { paced } from "../paced.ts";
import { now } from "../payload.ts";
import { rawClient } from "../redis.ts";
import { line, type Line } from "../result.ts";
import { interleave, pause } from "../rounds.ts";
import { median, percentile } from "../stats.ts";
import type { Bench } from "../suite.ts";

const TOPIC = "bench.stamp";
const CHANNEL = "bench:stamp";

export async function latency({ redisUrl, rounds, quick }: Bench): Promise<Line[]> {
  const count = quick ? 40 : 300;
  const fleet = await openFleet({ store: redisUrl });
  const client = await rawClient(redisUrl);
  const onEvents = startHelper();
  const onRaw = startHelper();
  await onEvents.call("subscribeEvents", { store: redisUrl, topic: TOPIC });
  await onRaw.call("subscribeRaw", { redisUrl, channel: CHANNEL });
  await pause(200);

  const tails = { ours: [] as number[], theirs: [] as number[] };
  const [ours = [], theirs = []] = await interleave(rounds, [
    async () => {
      const ages = await paced(onEvents, count, () => fleet.events.publish(TOPIC, { sent: now() }));
      tails.ours.push(percentile(ages, 0.99));
      return median(ages);
    },
    async () => {
      const ages = await paced(onRaw, count, () => client.publish(CHANNEL, JSON.stringify({ sent: now() })));
      tails.theirs.push(percentile(ages, 0.99));
      return median(ages);
    },
  ]);
  onEvents.stop();
  onRaw.stop();
  client.destroy();
  await fleet.close();
  const row = "P11";
  const sides = (mine: number[], bare: number[]) => ({
    ours: { label: "fleet event", unit: "µs", rounds: mine },
    theirs: { label: "@redis/client publish and subscribe", unit: "µs", rounds: bare },
  });
  return [
    line({
      row,
      what: "publish to handler in another process, idle, p50, Redis",
      ...sides(ours, theirs),
      target: { is: "at most", value: 1.3 },
    }),
    line({
      row,
      what: "the same, p99",
      ...sides(tails.ours.slice(1), tails.theirs.slice(1)),
    }),
  ];
}
