// P13: what a publish costs when there are few or many topics, and few or many subscriptions in one process.
import { openFleet, type Fleet } from "../../src/index.ts";
import { samplePing } from "../payload.ts";
import { flatLine } from "../flat.ts";
import type { Line } from "../result.ts";
import { interleave, oneByOne } from "../rounds.ts";
import { median } from "../stats.ts";
import type { Bench } from "../suite.ts";

export async function size(bench: Bench): Promise<Line[]> {
  return [...(await byTopics(bench)), ...(await bySubscriptions(bench))];
}

async function byTopics({ redisUrl, rounds, quick }: Bench): Promise<Line[]> {
  const sizes = quick ? [1, 1000] : [1, 100, 10_000];
  const repeats = quick ? 100 : 1000;
  const fleets: Fleet[] = [];
  const sides = [];
  for (const topics of sizes) {
    const fleet = await openFleet({ store: redisUrl, namespace: `topics-${topics}` });
    fleets.push(fleet);
    let index = 0;
    const publish = () => fleet.events.publish(`bench.t${++index % topics}`, samplePing(index));
    // All of them are there before anything is measured.
    for (let at = 0; at < topics; at += 500)
      await Promise.all(Array.from({ length: Math.min(500, topics - at) }, publish));
    sides.push(async () => median(await oneByOne(repeats, publish)));
  }
  const figures = await interleave(rounds, sides);
  await Promise.all(fleets.map((fleet) => fleet.close()));
  return [flatLine("publish, Redis, by number of topics", sizes, figures)];
}

/** One publish and its event in the hands of one subscription, while the process has so many of other topics. */
async function bySubscriptions({ redisUrl, rounds, quick }: Bench): Promise<Line[]> {
  const sizes = quick ? [1, 100] : [1, 100, 1000];
  const repeats = quick ? 50 : 500;
  const fleets: Fleet[] = [];
  const sides = [];
  for (const count of sizes) {
    const fleet = await openFleet({ store: redisUrl, namespace: `subscriptions-${count}` });
    fleets.push(fleet);
    const others = Array.from({ length: count - 1 }, (_, at) => fleet.events.subscribe(`bench.other${at}`));
    const subscription = fleet.events.subscribe("bench.heard");
    await Promise.all([...others, subscription].map(({ ready }) => ready));
    const events = subscription[Symbol.asyncIterator]();
    let index = 0;
    sides.push(async () =>
      median(
        await oneByOne(repeats, async () => {
          const received = events.next();
          await fleet.events.publish("bench.heard", samplePing(++index));
          await received;
        }),
      ),
    );
  }
  const figures = await interleave(rounds, sides);
  await Promise.all(fleets.map((fleet) => fleet.close()));
  return [flatLine("publish to handler, Redis, by number of subscriptions in the process", sizes, figures)];
}
