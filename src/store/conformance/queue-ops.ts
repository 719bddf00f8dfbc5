import * as fc from "fast-check";
import { type NewTask, ON_DUPLICATE, type Settlement } from "../../protocol/task.ts";
import type { QueueSettings } from "../queue-store.ts";

/** A task to submit; `again` picks an id that was submitted before. */
export type Submission = Partial<NewTask> & { again?: number };

/** The end of a claim: one that is there, or with `late` any that ever was. */
export interface Settle {
  pick: number;
  late: boolean;
  end: Settlement extends infer S ? (S extends Settlement ? Omit<S, "id" | "token"> : never) : never;
}

export type Limits = Pick<QueueSettings, "concurrency" | "keyConcurrency">;

/** One step of a random walk; `pick` and `picks` choose among what is there by then. */
export type Op =
  | { do: "submit"; tasks: readonly Submission[] }
  | { do: "turn"; holder: string; claim: number; settle: readonly Settle[] }
  | { do: "lose"; holders: string[]; crashed: number }
  | { do: "keep"; holder: string }
  | { do: "cancel" | "retry"; picks: readonly number[] }
  | { do: "limit"; limits: Limits }
  /** Time passes; then there is a turn of `holder`, or a sweep. */
  | { do: "advance"; ms: number; holder?: string; claim: number; settle: readonly Settle[] };

const holder = fc.constantFrom("h0", "h1", "h2");
const pick = fc.nat({ max: 1000 });
const claim = fc.integer({ min: 1, max: 4 });

export const LIMITS: fc.Arbitrary<Limits> = fc.record({
  concurrency: fc.constantFrom(0, 0, 1, 4),
  keyConcurrency: fc.constantFrom(0, 1, 1, 2),
});

const submission: fc.Arbitrary<Submission> = fc
  .record({
    again: fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: pick }),
    priority: fc.constantFrom(0, 0, 0, 0, 1, -1, 1000),
    key: fc.constantFrom(undefined, undefined, "a", "a", "b", "c"),
    delayMs: fc.constantFrom(0, 0, 0, 0, 5000, 30_000),
    ttlMs: fc.constantFrom(0, 0, 0, 8000, 40_000),
    maxAttempts: fc.integer({ min: 1, max: 3 }),
    dedupe: fc.oneof(
      { weight: 3, arbitrary: fc.constant(undefined) },
      {
        weight: 1,
        arbitrary: fc.record({
          key: fc.constantFrom("d", "e"),
          onDuplicate: fc.constantFrom(...ON_DUPLICATE),
          windowMs: fc.constantFrom(7000, 100_000),
        }),
      },
    ),
  })
  .map((given) => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)));

const end: fc.Arbitrary<Settle["end"]> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom({ outcome: "completed" as const, result: "[1]" }) },
  {
    weight: 4,
    arbitrary: fc.record({
      outcome: fc.constant("failed" as const),
      reason: fc.constantFrom("error" as const, "timeout" as const, "fatal" as const, "invalid" as const),
      error: fc.constant("boom"),
      retryInMs: fc.constantFrom(0, 0, 9000),
      final: fc.constantFrom(false, false, false, true),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ outcome: "crashed" as const, error: "crash" }) },
  {
    weight: 3,
    arbitrary: fc.record({
      outcome: fc.constantFrom("cancelled" as const, "interrupted" as const, "returned" as const),
    }),
  },
);

const settle = fc.array(fc.record({ pick, late: fc.constantFrom(false, false, false, true), end }), {
  maxLength: 3,
});

const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("submit" as const),
      tasks: fc.array(submission, { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("turn" as const), holder, claim, settle }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("lose" as const),
      holders: fc.uniqueArray(holder, { minLength: 1 }),
      crashed: fc.nat({ max: 255 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("keep" as const), holder }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("limit" as const), limits: LIMITS }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom("cancel" as const, "retry" as const),
      picks: fc.array(pick, { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc
      .record({
        do: fc.constant("advance" as const),
        ms: fc.constantFrom(1, 3000, 7000, 9999, 10_000, 45_000),
        holder: fc.constantFrom(undefined, "h0", "h1", "h2"),
        claim,
        settle,
      })
      .map(({ holder, ...rest }): Op => (holder === undefined ? rest : { ...rest, holder })),
  },
);

export const OPS = fc.array(op, { maxLength: 40, size: "max" });
