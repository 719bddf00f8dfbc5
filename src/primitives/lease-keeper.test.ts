import { describe, expect, it } from "vitest";
import { FleetError, isFleetError } from "../errors.ts";
import { SILENT } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { PoolStore } from "../store/pool-store.ts";
import type { LockStore } from "../store/state-store.ts";
import { LeaseBook } from "./lease-book.ts";
import type { KeptLease, LeaseKeeper } from "./lease-keeper.ts";
import { LockHold } from "./lock-hold.ts";
import { PoolHold } from "./pool-lease.ts";

const HOLD_MS = 400;

/** A hold of either kind, with a keeper and a store that do as the test says. */
function held(kind: "item" | "lock") {
  let kept: KeptLease | undefined;
  let knownUntil = 0;
  const letGo: boolean[] = [];
  const keeper: LeaseKeeper = {
    uses: () => undefined,
    keep: (lease) => {
      kept = lease;
      return { knownUntil: () => knownUntil, letGo: (over) => void letGo.push(over) };
    },
  };
  /** Settles the release that is under way. */
  let settle: (error?: Error) => void = () => undefined;
  const release = () =>
    new Promise<void>((resolve, reject) => {
      settle = (error) => (error === undefined ? resolve() : reject(error));
    });
  const book = new LeaseBook();
  const common = { holdMs: HOLD_MS, untilMs: monotonicMs() + HOLD_MS, log: SILENT, keeper, books: [book] };
  const pools: Pick<PoolStore, "change"> = {
    change: async ({ change }) => {
      if (change.do === "release") await release();
      return { outcome: "done", until: null, score: 0 };
    },
  };
  const locks: Pick<LockStore, "extend" | "release"> = {
    extend: async () => ({ outcome: "extended", until: 0 }),
    release: () => release().then(() => "released"),
  };
  const hold =
    kind === "item"
      ? new PoolHold({
          pool: "p",
          item: { id: "i", token: "1", until: 0, payload: "1", tagsJson: "{}", uses: 1, score: 0 },
          store: pools as PoolStore,
          ...common,
        })
      : new LockHold({ name: "l", key: "", token: "1", store: locks as LockStore, ...common });
  if (kept === undefined) throw new Error("nothing was told to the keeper");
  return {
    hold,
    kept,
    book,
    letGo,
    call: () => (hold instanceof LockHold ? hold.extend(1) : hold.change({ do: "report", what: "ok" })),
    release: () =>
      hold instanceof LockHold ? hold.release() : hold.end({ do: "release" }, "it was released"),
    settle: (error?: Error) => settle(error),
    knows: (ms: number) => (knownUntil = monotonicMs() + ms),
    busy: (ms: number) => {
      for (const end = monotonicMs() + ms; monotonicMs() < end;);
    },
  };
}

describe.each(["item", "lock"] as const)("the hold on a kept %s", (kind) => {
  it("goes on for a holder that was busy, as long as its keeper knows", async () => {
    const { hold, call, busy, knows, letGo } = held(kind);
    knows(60_000);
    busy(2 * HOLD_MS);
    expect(hold.signal.aborted).toBe(false);
    await call();
    // Its timer was due, too.
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(hold.signal.aborted).toBe(false);
    expect(letGo).toEqual([]);
  });

  it("is over in the step in which a holder goes on that was busy and is not known to hold it", async () => {
    const { hold, call, busy, letGo, book } = held(kind);
    const { signal } = hold;
    busy(2 * HOLD_MS);
    // As nobody has looked.
    expect(signal.aborted).toBe(false);
    expect(hold.signal.aborted).toBe(true);
    // Perhaps it has not ended in the store yet.
    expect(letGo).toEqual([false]);
    expect(book.size).toBe(0);
    await expect(call()).rejects.toSatisfy((error) => isFleetError(error, "FLEET_LEASE_LOST"));
  });

  it("is over when its keeper says so, and that is known", async () => {
    const { hold, kept, call, letGo } = held(kind);
    kept.lost();
    expect(hold.signal.aborted).toBe(true);
    expect(letGo).toEqual([true]);
    await expect(call()).rejects.toSatisfy((error) => isFleetError(error, "FLEET_LEASE_LOST"));
  });

  it("is not lost when it is gone for its keeper, because it is just being released", async () => {
    const { hold, kept, release, settle, letGo } = held(kind);
    const releasing = release();
    kept.lost();
    expect(hold.signal.aborted).toBe(false);
    settle();
    await releasing;
    expect(hold.signal.aborted).toBe(false);
    expect(letGo).toEqual([true]);
  });

  it("is left to its keeper where it cannot be given back", async () => {
    const { hold, settle, letGo, book } = held(kind);
    const givingUp = hold.giveUp();
    settle(new FleetError("FLEET_STORE_UNAVAILABLE", "away", { retryable: true }));
    await givingUp;
    expect(letGo).toEqual([false]);
    expect(book.size).toBe(0);
  });
});
