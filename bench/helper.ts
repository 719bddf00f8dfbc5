// Entry of a helper process; see `helper-calls.ts`.
import { openFleet, type Fleet } from "../src/index.ts";
import { Worker } from "bullmq";
import type { HelperCalls, HelperRequest, PushLoad } from "./helper-calls.ts";
import { PINGS, samplePing, sinceMicros, STAMPS } from "./payload.ts";
import { rawClient, type RawClient } from "./redis.ts";
import { oneByOne, pause } from "./rounds.ts";

type Answers = { [C in keyof HelperCalls]: (args: Parameters<HelperCalls[C]>[0]) => Promise<unknown> };

const ages: number[] = [];
const fleets = new Map<string, Promise<Fleet>>();
const clients = new Map<string, Promise<RawClient>>();

function fleetOn(store: string): Promise<Fleet> {
  const opened = fleets.get(store) ?? openFleet({ store });
  fleets.set(store, opened);
  return opened;
}

function clientOn(url: string): Promise<RawClient> {
  const opened = clients.get(url) ?? rawClient(url);
  clients.set(url, opened);
  return opened;
}

const answers: Answers = {
  async consumeStamps({ store }) {
    const fleet = await fleetOn(store);
    void (async () => {
      for await (const { sent } of fleet.stream(STAMPS)) ages.push(sinceMicros(sent));
    })();
  },

  async subscribeEvents({ store, topic }) {
    const subscription = (await fleetOn(store)).events.subscribe(topic);
    void (async () => {
      for await (const { payload } of subscription)
        ages.push(sinceMicros((payload as { sent: string }).sent));
    })();
    await subscription.ready;
  },

  async subscribeRaw({ redisUrl, channel }) {
    // A connection that subscribes does nothing else.
    const client = await rawClient(redisUrl);
    await client.subscribe(channel, (text) => {
      ages.push(sinceMicros((JSON.parse(text) as { sent: string }).sent));
    });
  },

  async drain({ redisUrl, channels }) {
    const client = await rawClient(redisUrl);
    await client.subscribe(channels, () => undefined);
  },

  takeAges: () => Promise.resolve(ages.splice(0)),

  async ping({ redisUrl, count, pauseMs }) {
    const client = await clientOn(redisUrl);
    return oneByOne(count, () => client.sendCommand(["PING"]), pauseMs);
  },

  async pushSqlite({ store, ms, perSecond }) {
    const stream = (await fleetOn(store)).stream(PINGS);
    const load: PushLoad = { perSecond: 0, tookMs: [], errors: 0 };
    const push = async () => {
      const started = performance.now();
      try {
        await stream.push(samplePing(load.tookMs.length));
        load.tookMs.push(performance.now() - started);
      } catch {
        load.errors += 1;
      }
    };
    const started = performance.now();
    if (perSecond === undefined) {
      while (performance.now() - started < ms) await push();
    } else {
      await onSchedule(ms, perSecond, push);
    }
    load.perSecond = (load.tookMs.length * 1000) / (performance.now() - started);
    return load;
  },

  async runBull({ redisUrl, queue, concurrency, note }) {
    const handler = (job: { data: { sent?: string; ok?: boolean } }) => {
      if (note) ages.push(sinceMicros(job.data.sent ?? "0"));
      return Promise.resolve({ ok: job.data.ok });
    };
    const worker = new Worker(queue, handler, { connection: { url: redisUrl }, concurrency });
    worker.on("error", () => undefined);
    await worker.waitUntilReady();
  },
};

/** Starts `perSecond` calls, whether or not earlier ones have settled, and waits for all. */
async function onSchedule(ms: number, perSecond: number, call: () => Promise<void>): Promise<void> {
  const started = performance.now();
  const under: Promise<void>[] = [];
  for (let elapsed = 0; elapsed < ms; elapsed = performance.now() - started) {
    while (under.length < (elapsed * perSecond) / 1000) under.push(call());
    await pause(1);
  }
  await Promise.all(under);
}

process.on("message", (message: HelperRequest) => {
  const { id, call, args } = message;
  const answer = answers[call] as (args: unknown) => Promise<unknown>;
  answer(args).then(
    (value) => process.send?.({ id, value }),
    (error: unknown) => process.send?.({ id, error: error instanceof Error ? error.message : String(error) }),
  );
});
process.on("disconnect", () => process.exit());
