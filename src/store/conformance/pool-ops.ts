import * as fc from "fast-check";
import type { ItemTags } from "../../protocol/pool.ts";
import type { HolderChange, PoolSettings } from "../pool-store.ts";

/** One step of a random walk by one of three connections; each `pick` chooses among what is there by then. */
export type Op = { by: number } & (
  | { do: "put"; items: readonly { again: number | undefined; tags: ItemTags; ttlMs: number }[] }
  | {
      do: "claim";
      holder: string;
      where: ItemTags;
      n: number;
      autoExtend: boolean;
      patienceMs: number | undefined;
    }
  /** Somebody who asked before asks again. */
  | { do: "again"; pick: number; stays: boolean }
  | { do: "leave"; pick: number }
  /** By a claim that is there, or with `late` by any that ever was. */
  | { do: "change"; pick: number; late: boolean; change: HolderChange }
  | { do: "retire" | "remove"; pick: number }
  | { do: "keep" | "lose"; holder: string }
  | { do: "sweep" }
  | { do: "advance"; ms: number }
);

type Without<T> = T extends unknown ? Omit<T, "by"> : never;

const holder = fc.constantFrom("h0", "h1", "h2");
const pick = fc.nat({ max: 1000 });
const TAGS: ItemTags[] = [
  {},
  { a: ["1"] },
  { a: ["2"] },
  { a: ["1", "2"], b: ["1"] },
  { a: ["1"], b: ["1"] },
];
const WHERES: ItemTags[] = [{}, {}, { a: ["1"] }, { a: ["1", "2"] }, { b: ["1"] }, { a: ["2"], b: ["1"] }];

/** What of a pool's settings a walk goes by, and how far the clocks of its three connections are apart. */
export interface Setting {
  some: Partial<PoolSettings>;
  offsets: readonly number[];
}

/** Where clocks are apart, nobody can say what was released first, nor whether a waiter was patient for long enough. */
export const SETTING: fc.Arbitrary<Setting> = fc
  .record({
    some: fc.record({
      strategy: fc.constantFrom("lru" as const, "fifo" as const, "random" as const),
      maxUses: fc.constantFrom(0, 0, 1, 3),
      maxAgeMs: fc.constantFrom(0, 0, 40_000),
      cooldownMs: fc.constantFrom(0, 0, 4000),
      retireAtScore: fc.constantFrom(null, null, -1),
    }),
    offsets: fc.constantFrom([0, 0, 0], [0, 1500, -900]),
  })
  .map(({ some, offsets }) => ({ some, offsets: some.strategy === "lru" ? [0, 0, 0] : offsets }));

const change: fc.Arbitrary<HolderChange> = fc.oneof(
  { weight: 5, arbitrary: fc.constant({ do: "release" as const }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("cool" as const), ms: fc.constantFrom(0, 3000, 20_000) }),
  },
  { weight: 1, arbitrary: fc.constant({ do: "retire" as const, note: "asked" }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("extend" as const), holdMs: fc.constantFrom(1, 15_000) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("report" as const),
      what: fc.constantFrom("ok" as const, "bad" as const, "bad" as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(...TAGS)
      .map((tags) => ({ do: "update" as const, payload: '"new"', tags, tagsJson: JSON.stringify(tags) })),
  },
);

const op: fc.Arbitrary<Without<Op>> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("put" as const),
      items: fc.array(
        fc.record({
          again: fc.oneof({ weight: 7, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: pick }),
          tags: fc.constantFrom(...TAGS),
          ttlMs: fc.constantFrom(0, 0, 12_000, 50_000),
        }),
        { minLength: 1, maxLength: 4 },
      ),
    }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constant("claim" as const),
      holder,
      where: fc.constantFrom(...WHERES),
      n: fc.constantFrom(1, 1, 1, 2, 3),
      autoExtend: fc.boolean(),
      patienceMs: fc.constantFrom(undefined, undefined, 6000, 60_000),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("again" as const),
      pick,
      stays: fc.constantFrom(true, true, true, false),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("leave" as const), pick }) },
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constant("change" as const),
      pick,
      late: fc.boolean(),
      change,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("retire" as const, "remove" as const), pick }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("keep" as const, "keep" as const, "lose" as const), holder }),
  },
  { weight: 2, arbitrary: fc.constant({ do: "sweep" as const }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("advance" as const),
      ms: fc.constantFrom(1, 1000, 4000, 4000, 9999, 10_000, 30_000),
    }),
  },
);

export const OPS: fc.Arbitrary<Op[]> = fc.array(
  fc.tuple(fc.nat({ max: 2 }), op).map(([by, rest]): Op => ({ by, ...rest })),
  { minLength: 20, maxLength: 70, size: "max" },
);
