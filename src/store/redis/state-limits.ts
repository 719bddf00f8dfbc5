import { type KeptWindow, limitRecord, windowIds } from "../limit-windows.ts";
import type { LimitStore, LimitWindow } from "../state-store.ts";
import { nameIndex } from "./name-index.ts";
import { pairs, type RedisParts } from "./parts.ts";

/** How many keys one step of a sweep forgets. */
const SWEEP = 1000;
/** A length that no permit is ever reserved for: whoever waits without an end. */
const ENDLESS_MS = 1e12;

export function redisLimits({ link, run, keys, identity }: RedisParts): LimitStore {
  const index = nameIndex(link, run, keys.fleet.limits);

  async function sweepOne(name: string): Promise<number> {
    for (let forgotten = 0; ;) {
      const found = await run<number>("limit-sweep", {
        keys: { base: keys.limit(name) },
        args: { n: String(SWEEP) },
        repeatable: true,
      });
      forgotten += found;
      if (found < SWEEP) return forgotten;
    }
  }

  return {
    async take({ name, key, windows, cost, withinMs, request }) {
      await index.enter(name);
      const [outcome, waitMs, at, fresh] = await run<["granted" | "later", string, string, number]>(
        "limit-take",
        {
          keys: { base: keys.limit(name) },
          args: { key, cost: String(cost), withinMs: String(Math.min(withinMs, ENDLESS_MS)), request },
          rest: wireOf(windows),
          repeatable: true,
        },
      );
      if (fresh === 1) {
        await index.again(name);
        void identity.reseed();
      }
      return { outcome, waitMs: Number(waitMs), at: Number(at) / 1000 };
    },

    giveBack: ({ name, key, windows, cost, at, request }) =>
      run("limit-give-back", {
        keys: { base: keys.limit(name) },
        args: { key, cost: String(cost), at: String(Math.round(at * 1000)), request },
        rest: wireOf(windows),
        // A repeat finds its request gone: too late, and nothing is given back twice.
        repeatable: true,
      }),

    async list() {
      const names = await index.all();
      const found = await Promise.all(
        names.map((name) =>
          link.call(["EXISTS", keys.limit(name)], { repeatable: true, key: keys.limit(name) }),
        ),
      );
      return names.filter((_, i) => found[i] === 1);
    },

    async show({ name, n }) {
      if (n <= 0) return [];
      const [now, ...flat] = await run<string[]>("limit-show", {
        keys: { base: keys.limit(name) },
        args: { n: String(n) },
        repeatable: true,
      });
      return pairs(flat)
        .map(([key, text]) => limitRecord(key, keptOf(text), Number(now)))
        .toSorted((a, b) => (a.key < b.key ? -1 : 1));
    },

    async sweep() {
      let forgotten = 0;
      for (const name of await index.all()) forgotten += await sweepOne(name);
      return { forgotten };
    },
  };
}

/** What the scripts take: id, limit, perMs, burst. */
function wireOf(windows: readonly LimitWindow[]): string[] {
  const ids = windowIds(windows);
  return windows.flatMap(({ limit, perMs, burst }, i) => [
    ids[i] as string,
    String(limit),
    String(perMs),
    String(burst),
  ]);
}

/** The windows of the last call, out of a state as `limit.lua` keeps it. */
function keptOf(text: string): KeptWindow[] {
  const kept: KeptWindow[] = [];
  for (const window of (text.split("|", 1)[0] as string).split(";").slice(1)) {
    const [, limit, perMs, burst, tat, last] = window.split(" ").map(Number) as [
      0,
      number,
      number,
      number,
      number,
      0 | 1,
    ];
    if (last === 1) kept.push({ limit, perMs, burst, tat });
  }
  return kept;
}
