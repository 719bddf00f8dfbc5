// P6: handing tasks over: many at once, many callers at once, one after the other.
import { openFleet } from "../../src/index.ts";
import { defineQueue } from "../../src/contracts/queue.ts";
import { Ping, samplePing } from "../payload.ts";
import { rawClient } from "../redis.ts";
import { line, type Line } from "../result.ts";
import { interleave, oneByOne } from "../rounds.ts";
import { median } from "../stats.ts";
import type { Bench } from "../suite.ts";
import { bullQueue, checkedPing } from "./bull.ts";

const BULK = 1000;
const SINGLES = 500;
const PINGS = defineQueue("submit", Ping);

export async function submit({ redisUrl, rounds, quick }: Bench): Promise<Line[]> {
  const store = `${redisUrl}/6`;
  const fleet = await openFleet({ store });
  const queue = fleet.queue(PINGS);
  const bull = bullQueue(`${redisUrl}/7`, "submit");
  const ours = await rawClient(store);
  const theirs = await rawClient(`${redisUrl}/7`);
  await bull.waitUntilReady();
  let index = 0;
  const repeats = quick ? 2 : 20;

  /** Tasks per second of `times` calls of `work`, each of which hands over `size` tasks. Each round starts with an empty database. */
  const rate = async (client: typeof ours, size: number, times: number, work: () => Promise<unknown>) => {
    await client.sendCommand(["FLUSHDB"]);
    const started = performance.now();
    for (let at = 0; at < times; at++) await work();
    return (size * times * 1000) / (performance.now() - started);
  };
  const many = (size: number) => Array.from({ length: size }, () => ++index);

  const [bulkOurs = [], bulkTheirs = [], singlesOurs = [], singlesTheirs = []] = await interleave(rounds, [
    () => rate(ours, BULK, repeats, () => queue.submitMany(many(BULK).map(samplePing))),
    () =>
      rate(theirs, BULK, Math.ceil(repeats / 4), () =>
        bull.addBulk(many(BULK).map((at) => ({ name: "ping", data: checkedPing(at) }))),
      ),
    () =>
      rate(ours, SINGLES, repeats, () =>
        Promise.all(many(SINGLES).map((at) => queue.submit(samplePing(at)))),
      ),
    () =>
      rate(theirs, SINGLES, Math.ceil(repeats / 4), () =>
        Promise.all(many(SINGLES).map((at) => bull.add("ping", checkedPing(at)))),
      ),
  ]);
  const lone = quick ? 200 : 2000;
  const [oneOurs = [], oneTheirs = []] = await interleave(rounds, [
    async () => median(await oneByOne(lone, () => queue.submit(samplePing(++index)))),
    async () => median(await oneByOne(lone, () => bull.add("ping", checkedPing(++index)))),
  ]);
  for (const client of [ours, theirs]) {
    await client.sendCommand(["FLUSHDB"]);
    client.destroy();
  }
  await bull.close();
  await fleet.close();

  const row = "P6";
  const unit = "tasks/s";
  return [
    line({
      row,
      what: `submit in bulk of ${BULK}`,
      ours: { label: "fleet submitMany", unit, rounds: bulkOurs },
      theirs: { label: "BullMQ addBulk", unit, rounds: bulkTheirs },
      target: { is: "at least", value: 10 },
    }),
    line({
      row,
      what: `${SINGLES} concurrent single submissions per tick`,
      ours: { label: "fleet submit", unit, rounds: singlesOurs },
      theirs: { label: "BullMQ add", unit, rounds: singlesTheirs },
      target: { is: "at least", value: 10 },
    }),
    line({
      row,
      what: "one submission alone, awaited: submissions per second",
      ours: { label: "fleet submit", unit, rounds: oneOurs.map(perSecond) },
      theirs: { label: "BullMQ add", unit, rounds: oneTheirs.map(perSecond) },
      target: { is: "at least", value: 1.5 },
    }),
  ];
}

function perSecond(micros: number): number {
  return 1_000_000 / micros;
}
