import type { CounterOp, CounterStore, StateRef } from "../state-store.ts";
import { nameIndex } from "./name-index.ts";
import { pairs, type RedisParts } from "./parts.ts";

export function redisCounters({ link, run, keys, identity }: RedisParts): CounterStore {
  const index = nameIndex(link, run, keys.fleet.counters);
  const change = async (
    { name, key, op }: StateRef & { op: CounterOp },
    how: "add" | "set" | "compare",
    value: number,
    expected = 0,
  ): Promise<{ outcome: Outcome; value: number; before: number }> => {
    await index.enter(name);
    const [outcome, now, before, fresh] = await run<[Outcome, string, string, number]>("counter-change", {
      keys: { values: keys.counter(name) },
      args: {
        producer: op.producer,
        seq: String(op.seq),
        key,
        how,
        value: String(value),
        expected: String(expected),
      },
      repeatable: true,
    });
    if (fresh === 1) {
      await index.again(name);
      void identity.reseed();
    }
    return { outcome, value: Number(now), before: Number(before) };
  };

  return {
    async add({ by, ...args }) {
      const { outcome, value } = await change(args, "add", by);
      return { outcome: outcome === "overflow" ? outcome : "done", value };
    },

    async get({ name, key }) {
      const values = keys.counter(name);
      const value = await link.call(["HGET", values, key], { repeatable: true, key: values });
      return Number(value ?? 0);
    },

    async set({ value: wanted, ...args }) {
      const { value, before } = await change(args, "set", wanted);
      return { value, before };
    },

    async compareAndSet({ expected, value: wanted, ...args }) {
      const { outcome, value } = await change(args, "compare", wanted, expected);
      return { outcome: outcome === "set" ? outcome : "different", value };
    },

    async list() {
      const names = await index.all();
      const found = await Promise.all(
        names.map((name) =>
          link.call(["EXISTS", keys.counter(name)], { repeatable: true, key: keys.counter(name) }),
        ),
      );
      return names.filter((_, i) => found[i] === 1);
    },

    async page({ name, n, after }) {
      if (n <= 0) return [];
      const flat = await run<string[]>("counter-page", {
        keys: { values: keys.counter(name) },
        args: { n: String(n), from: after === undefined ? "-" : `(${after}` },
        repeatable: true,
      });
      return pairs(flat).map(([key, value]) => ({ key, value: Number(value) }));
    },

    remove: ({ name, key }) =>
      run("counter-remove", { keys: { values: keys.counter(name) }, args: { key }, repeatable: true }),
  };
}

type Outcome = "done" | "overflow" | "set" | "different";
