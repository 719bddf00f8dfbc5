// P11: events published without waiting for each, so many per tick, beside the bare client's PUBLISH per event.
import { openFleet } from "../../src/index.ts";
import { defineTopic } from "../../src/contracts/topic.ts";
import { startHelper } from "../helper-process.ts";
import { Ping, samplePing } from "../payload.ts";
import { rawClient, type RawClient } from "../redis.ts";
import { line, type Line } from "../result.ts";
import { interleave } from "../rounds.ts";
import { scriptMicros } from "../server-time.ts";
import type { Bench } from "../suite.ts";

const PER_TICK = 500;
const TOPIC = defineTopic("bench.ping", Ping);
const CHANNEL = "bench:ping";

export async function publish({ redisUrl, rounds, quick }: Bench): Promise<Line[]> {
  const ticks = quick ? 20 : 200;
  const fleet = await openFleet({ store: redisUrl });
  const client = await rawClient(redisUrl);
  const timed = await rawClient(redisUrl, { timed: true });
  const helper = startHelper();
  let index = 0;
  const ours = () => fleet.events.publish(TOPIC, samplePing(++index));
  const bare = (by: RawClient) => () => by.publish(CHANNEL, JSON.stringify(samplePing(++index)));

  /** Events per second: all of one tick are under way at once, the next tick begins when they are through. */
  const rate = async (call: () => Promise<unknown>) => {
    const started = performance.now();
    for (let tick = 0; tick < ticks; tick++) await Promise.all(Array.from({ length: PER_TICK }, call));
    return (ticks * PER_TICK * 1000) / (performance.now() - started);
  };
  /** The same where each event is waited for before the next. */
  const oneByOne = async (call: () => Promise<unknown>) => {
    const count = (ticks * PER_TICK) / 20;
    const started = performance.now();
    for (let i = 0; i < count; i++) await call();
    return (count * 1000) / (performance.now() - started);
  };
  const sides = [() => rate(ours), () => rate(bare(client))];
  const [unheard = [], bareUnheard = []] = await interleave(rounds, sides);
  // A subscriber for each side, which reads and drops what comes.
  await helper.call("drain", { redisUrl, channels: [`event:${TOPIC.name}`, CHANNEL] });
  const [heard = [], bareHeard = [], timedHeard = [], awaitedHeard = []] = await interleave(rounds, [
    ...sides,
    () => rate(bare(timed)),
    () => oneByOne(bare(client)),
  ]);
  helper.stop();
  const micros: number[] = [];
  for (let round = 0; round < Math.min(rounds, 3); round++)
    micros.push(await scriptMicros(client, () => rate(ours)));
  client.destroy();
  timed.destroy();
  await fleet.close();

  const row = "P11";
  const unit = "events/s";
  const fleetPublish = { label: "fleet publish", unit, rounds: heard };
  return [
    line({
      row,
      what: `${PER_TICK} publishes per tick, one subscriber, against as many PUBLISH of the client as it is by default`,
      ours: fleetPublish,
      theirs: { label: "@redis/client PUBLISH, a timer per command", unit, rounds: timedHeard },
      target: { is: "at least", value: 3 },
    }),
    line({
      row,
      what: "the same, against a PUBLISH per event that is waited for before the next",
      ours: fleetPublish,
      theirs: { label: "@redis/client PUBLISH, awaited", unit, rounds: awaitedHeard },
    }),
    line({
      row,
      what: "the same, against as many PUBLISH of the client without its timers, which it pipelines by itself",
      ours: fleetPublish,
      theirs: { label: "@redis/client PUBLISH, no timers", unit, rounds: bareHeard },
    }),
    line({
      row,
      what: "the last, nobody subscribed",
      ours: { label: "fleet publish", unit, rounds: unheard },
      theirs: { label: "@redis/client PUBLISH, no timers", unit, rounds: bareUnheard },
    }),
    line({
      row,
      what: "the same: time on the server per call, of however many events",
      ours: { label: "EVALSHA", unit: "µs of the server", rounds: micros },
    }),
  ];
}
