import { FleetError } from "../../errors.ts";
import { monotonicMs } from "../../internal/timers.ts";
import type { StoredEntry, StreamBounds, StreamStore } from "../store.ts";
import type { StreamKeys } from "./keys.ts";
import { enterName } from "./name-index.ts";
import { pairs, type RedisParts } from "./parts.ts";

const QUARANTINE_KEPT = 1000;
/** A producer that was silent for so long is forgotten: it is not going to repeat its last call. */
const SILENT_MS = 3_600_000;

export function redisStreams({ link, run, keys, identity, subscriber, clock }: RedisParts): StreamStore {
  // The names of a stream are asked for with every push: made once.
  const known = new Map<string, StreamKeys>();
  const keysOf = (name: string): StreamKeys => {
    let found = known.get(name);
    if (found === undefined) known.set(name, (found = keys.stream(name)));
    return found;
  };

  return {
    async declare({ stream, bounds, as }) {
      const { meta } = keysOf(stream);
      // The index lies on another node of a cluster, so this takes two steps. First the index: it may name too much, never too little.
      await enterName(run, keys.fleet.streams, stream);
      const held = await run<string[]>("stream-declare", {
        keys: { meta },
        args: {
          role: as,
          maxLength: String(bounds.maxLength),
          ttlMs: String(bounds.ttlMs),
          maxPayloadBytes: String(bounds.maxPayloadBytes),
        },
        repeatable: true,
      });
      return boundsOf(held);
    },

    async push({ stream, entries, op }) {
      const { stream: zset, meta, hint } = keysOf(stream);
      const sentAt = monotonicMs();
      const guess = String(clock.guess(sentAt));
      const reply = await run<PushReply>("stream-push", {
        keys: { stream: zset, meta },
        args: { hint, fleet: identity.id, operation: `op:${op.producer}`, seq: String(op.seq), guess },
        rest: entries.map(({ head, tail }) => head + guess + tail),
        repeatable: true,
      });
      if (typeof reply === "number") return { outcome: "pushed", length: reply, trimmed: 0, expired: 0 };
      if (typeof reply === "object") {
        const [length, micros, trimmed, expired] = reply;
        clock.learn(micros / 1000, sentAt);
        return { outcome: "pushed", length, trimmed, expired };
      }
      // No bounds where there were some: the store may have come back empty, and then the fleet's id is gone as well.
      if (reply === "undeclared") void identity.reseed();
      return { outcome: reply };
    },

    async pop({ stream, n }) {
      if (n <= 0) return [];
      const { stream: zset, meta } = keysOf(stream);
      return run<string[]>("stream-pop", {
        keys: { stream: zset, meta },
        args: { n: String(n) },
        repeatable: false,
      });
    },

    async peek({ stream, n, after = "", newest = false }) {
      if (n <= 0) return [];
      // A score, as Redis writes it.
      if (after !== "" && !/^[1-9]\d*(\.\d+)?$/.test(after)) {
        throw new FleetError(
          "FLEET_OPTION_INVALID",
          `after: ${JSON.stringify(after)} is no cursor of this store`,
        );
      }
      const { stream: zset, meta } = keysOf(stream);
      const flat = await run<string[]>("stream-peek", {
        keys: { stream: zset, meta },
        args: { n: String(n), after, newest: newest ? "1" : "" },
        repeatable: true,
      });
      const found = pairs(flat).map(([raw, cursor]): StoredEntry => ({ cursor, raw }));
      return newest ? found.toReversed() : found;
    },

    async length({ stream }) {
      const { stream: zset, meta } = keysOf(stream);
      return run<number>("stream-length", { keys: { stream: zset, meta }, repeatable: true });
    },

    async stats({ stream }) {
      const { stream: zset, meta } = keysOf(stream);
      const found = await run<string[]>("stream-stats", { keys: { stream: zset, meta }, repeatable: true });
      if (found.length === 0) return undefined;
      const [pushed, popped, trimmed, expired, invalid, length] = found.slice(3, 9).map(Number) as SixNumbers;
      const oldest = found[9] as string;
      return {
        length,
        bounds: boundsOf(found),
        oldestTs: oldest === "" ? null : Math.floor(Number(oldest)),
        pushed,
        popped,
        trimmed,
        expired,
        invalid,
      };
    },

    async list() {
      const key = keys.fleet.streams;
      const names = (await link.call(["SMEMBERS", key], { repeatable: true, key })) as string[];
      return names.toSorted();
    },

    async quarantine({ stream, entries }) {
      if (entries.length === 0) return;
      const { quarantine, meta } = keysOf(stream);
      await run("stream-quarantine", {
        keys: { quarantine, meta },
        args: { keep: String(QUARANTINE_KEPT) },
        // JSON text has no raw line break, so the first one ends the reason.
        rest: entries.map(({ raw, reason }) => `${JSON.stringify(reason)}\n${raw}`),
        repeatable: false,
      });
    },

    async quarantined({ stream, n }) {
      if (n <= 0) return [];
      const { quarantine: key } = keysOf(stream);
      const found = (await link.call(["LRANGE", key, "0", String(n - 1)], {
        repeatable: true,
        key,
      })) as string[];
      return found.map((text) => {
        const end = text.indexOf("\n");
        return { raw: text.slice(end + 1), reason: JSON.parse(text.slice(0, end)) as string };
      });
    },

    async sweep({ stream }) {
      const { stream: zset, meta } = keysOf(stream);
      const expired = await run<number>("stream-sweep", {
        keys: { stream: zset, meta },
        args: { silentMs: String(SILENT_MS) },
        repeatable: true,
      });
      return { expired };
    },

    watch({ stream }, onHint) {
      return subscriber.listen("channel", keysOf(stream).hint, {
        onMessage: (fleet) => {
          if (fleet === identity.id) onHint();
        },
        onRestored: onHint,
      });
    },
  };
}

type PushReply =
  | number
  | [length: number, micros: number, trimmed: number, expired: number]
  | "duplicate"
  | "undeclared";
type SixNumbers = [number, number, number, number, number, number];

function boundsOf([maxLength, ttlMs, maxPayloadBytes]: readonly string[]): StreamBounds {
  return { maxLength: Number(maxLength), ttlMs: Number(ttlMs), maxPayloadBytes: Number(maxPayloadBytes) };
}
