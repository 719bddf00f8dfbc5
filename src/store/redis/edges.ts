import type { Direction, User } from "../../protocol/topology.ts";
import { type EdgeMinutes, perMinute } from "../edge-minutes.ts";
import { type EdgeRecord, type EdgeStore, MOST_EDGES } from "../edge-store.ts";
import { pairs, type RedisParts } from "./parts.ts";
import { hashPlace } from "./places.ts";

export function redisEdges({ run, keys, book }: Pick<RedisParts, "run" | "keys" | "book">): EdgeStore {
  const { counts, seen } = keys.edges;
  return {
    async observe({ from, edges }) {
      if (edges.length === 0) return;
      await run("edge-observe", {
        keys: { counts, seen },
        args: { most: String(MOST_EDGES) },
        rest: edges.flatMap(({ direction, name, count }) => [
          `${direction} ${name} ${from.kind} ${from.name}`,
          String(count),
        ]),
        repeatable: false,
      });
    },

    async list() {
      const [time, ...flat] = await run<string[]>("edge-list", { keys: { counts }, repeatable: true });
      const now = Number(time);
      const { good } = book.look(hashPlace("observed use", counts), pairs(flat), (text, edge): EdgeRecord => {
        const kept = minutesOf(text);
        const { count, firstSeenAt, lastSeenAt } = kept;
        return { ...edgeOf(edge), count, firstSeenAt, lastSeenAt, perMinute: perMinute(kept, now) };
      });
      return { now, edges: good.map(([, edge]) => edge) };
    },

    async sweep({ unseenMs }) {
      const forgotten = await run<number>("edge-sweep", {
        keys: { counts, seen },
        args: { unseenMs: String(unseenMs) },
        repeatable: true,
      });
      return { forgotten };
    },
  };
}

/** The user's name stands last: it alone may have spaces. */
function edgeOf(edge: string): { direction: Direction; name: string; from: User } {
  const [direction = "", name = "", kind = "", ...from] = edge.split(" ");
  if (from.length === 0) throw new Error("its key is not <direction> <name> <kind> <name>");
  return {
    direction: direction as Direction,
    name,
    from: { kind: kind as User["kind"], name: from.join(" ") },
  };
}

function minutesOf(text: string): EdgeMinutes {
  if (!/^\d+(?: \d+){5}$/.test(text)) throw new Error("it is not six numbers");
  const [count = 0, firstSeenAt = 0, lastSeenAt = 0, minute = 0, current = 0, before = 0] = text
    .split(" ")
    .map(Number);
  return { count, firstSeenAt, lastSeenAt, minute, current, before };
}
