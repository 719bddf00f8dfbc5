import { decodeEvent, matchesTopic } from "../../protocol/event.ts";
import type { EventStore, NewEvent } from "../store.ts";
import type { Keys } from "./keys.ts";
import { pairs, type RedisParts } from "./parts.ts";

/** How many topics one call reads or forgets, about: the server does nothing else meanwhile. */
const STEP = 1000;

export function redisEvents({ link, keys, run, identity, subscriber }: RedisParts): EventStore {
  /** How often a lost connection has come back: maybe to another server, to which the place in a walk means nothing. */
  let restored = 0;
  link.onRestored(() => (restored += 1));

  /** There may be very many topics, and a number is asked for wherever somebody subscribes: so one alone, or in steps. */
  async function lastSeqs(pattern: string): Promise<Map<string, number>> {
    const options = { repeatable: true, key: keys.eventSeqs };
    if (!pattern.includes("*")) {
      const seq = (await link.call(["HGET", keys.eventSeqs, pattern], options)) as string | null;
      return new Map(seq === null ? [] : [[pattern, Number(seq)]]);
    }
    const seqs = new Map<string, number>();
    for (let cursor = "0"; ;) {
      const before = restored;
      const command = ["HSCAN", keys.eventSeqs, cursor, "MATCH", pattern, "COUNT", String(STEP)];
      const [next, found] = (await link.call(command, options)) as [string, string[]];
      for (const [topic, seq] of pairs(found)) if (matchesTopic(pattern, topic)) seqs.set(topic, Number(seq));
      cursor = before === restored ? next : "0";
      if (next === "0" && before === restored) return seqs;
    }
  }

  async function publishMany(events: readonly NewEvent[]): Promise<{ seq: number; ts: number }[]> {
    if (events.length === 0) return [];
    const { rest, counts } = runsOf(events, keys);
    const [time, ...firsts] = await run<[string, ...number[]]>("event-publish", {
      keys: { seqs: keys.eventSeqs, times: keys.eventTimes },
      args: { afterSeq: `,"fleet":${JSON.stringify(identity.id)},"payload":` },
      rest,
      repeatable: false,
    });
    const ts = Number(time);
    return firsts.flatMap((first, at) =>
      Array.from({ length: counts[at] ?? 0 }, (_, n) => ({ seq: first + n, ts })),
    );
  }

  return {
    async publish(event) {
      const [answer] = await publishMany([event]);
      return answer as { seq: number; ts: number };
    },

    publishMany: ({ events }) => publishMany(events),

    async sweep({ prefix, silentMs }) {
      let [forgotten, cursor] = [0, "0"];
      do {
        const [some, next] = await run<[number, string]>("event-sweep", {
          keys: { seqs: keys.eventSeqs, times: keys.eventTimes },
          args: { prefix, silentMs: String(silentMs), n: String(STEP), cursor },
          repeatable: true,
        });
        forgotten += some;
        cursor = next;
      } while (cursor !== "0");
      return { forgotten };
    },

    subscribe({ pattern }, onEvent) {
      // What comes in while the baselines are being read is behind them, though the reading may count it already.
      let firstSeen: Map<string, number> | undefined = new Map();
      const kind = pattern.includes("*") ? "pattern" : "channel";
      const subscription = subscriber.listen(kind, keys.event(pattern), {
        onMessage: (text) => {
          const event = decodeEvent(text);
          if (event === undefined || event.fleet !== identity.id) return;
          if (firstSeen !== undefined && !firstSeen.has(event.topic)) firstSeen.set(event.topic, event.seq);
          onEvent(event);
        },
      });
      const baselines = subscription.ready.then(async () => {
        const seqs = await lastSeqs(pattern);
        for (const [topic, seq] of firstSeen ?? []) seqs.set(topic, Math.min(seqs.get(topic) ?? 0, seq - 1));
        return seqs;
      });
      // A failure is the caller's to see, where it looks at the baselines at all.
      baselines.catch(() => undefined).finally(() => (firstSeen = undefined));
      return { ...subscription, baselines };
    },
  };
}

/** What the script takes: what follows one another with the same topic and source, behind what its messages share. */
function runsOf(events: readonly NewEvent[], keys: Keys): { rest: string[]; counts: number[] } {
  const rest: string[] = [];
  const counts: number[] = [];
  for (let at = 0; at < events.length;) {
    const { topic, source } = events[at] as NewEvent;
    let end = at + 1;
    while (events[end]?.topic === topic && events[end]?.source === source) end += 1;
    const beforeTs = `{"topic":${JSON.stringify(topic)},"ts":`;
    const beforeSeq = `,"source":${JSON.stringify(source)},"seq":`;
    rest.push(topic, keys.event(topic), beforeTs, beforeSeq, String(end - at));
    counts.push(end - at);
    for (; at < end; at++) rest.push((events[at] as NewEvent).payload);
  }
  return { rest, counts };
}
