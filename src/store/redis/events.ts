import { decodeEvent, matchesTopic } from "../../protocol/event.ts";
import type { EventStore, NewEvent } from "../store.ts";
import type { Keys } from "./keys.ts";
import type { RedisParts } from "./parts.ts";

export function redisEvents({ link, keys, run, identity, subscriber }: RedisParts): EventStore {
  async function lastSeqs(pattern: string): Promise<Map<string, number>> {
    const key = keys.eventSeqs;
    const seqs = (await link.call(["HGETALL", key], { repeatable: true, key })) as Record<string, string>;
    const matching = Object.entries(seqs).filter(([topic]) => matchesTopic(pattern, topic));
    return new Map(matching.map(([topic, seq]) => [topic, Number(seq)]));
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
      const forgotten = await run<number>("event-sweep", {
        keys: { seqs: keys.eventSeqs, times: keys.eventTimes },
        args: { prefix, silentMs: String(silentMs) },
        repeatable: true,
      });
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
