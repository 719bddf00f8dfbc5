import { decodeEvent, matchesTopic } from "../../protocol/event.ts";
import type { EventStore } from "../store.ts";
import type { RedisParts } from "./parts.ts";

export function redisEvents({ link, keys, run, identity, subscriber }: RedisParts): EventStore {
  async function lastSeqs(pattern: string): Promise<Map<string, number>> {
    const key = keys.eventSeqs;
    const seqs = (await link.call(["HGETALL", key], { repeatable: true, key })) as Record<string, string>;
    const matching = Object.entries(seqs).filter(([topic]) => matchesTopic(pattern, topic));
    return new Map(matching.map(([topic, seq]) => [topic, Number(seq)]));
  }

  return {
    async publish({ topic, source, payload }) {
      const fleet = JSON.stringify(identity.id);
      const [seq, ts] = await run<[number, string]>("event-publish", {
        keys: { seqs: keys.eventSeqs, times: keys.eventTimes },
        args: {
          topic,
          channel: keys.event(topic),
          beforeTs: `{"topic":${JSON.stringify(topic)},"ts":`,
          beforeSeq: `,"source":${JSON.stringify(source)},"seq":`,
          tail: `,"fleet":${fleet},"payload":${payload}}`,
        },
        repeatable: false,
      });
      return { seq, ts: Number(ts) };
    },

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
