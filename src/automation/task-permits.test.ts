import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished, vi } from "vitest";
import { SILENT } from "../internal/log.ts";
import type { ClaimedTask } from "../protocol/task.ts";
import type { LimitStore } from "../store/state-store.ts";
import { openStore } from "../store/open.ts";
import { TaskPermits } from "./task-permits.ts";

/** The permits of a process, on a limiter of its own that keeps record. `want` as a desk says it, again whenever something has changed. */
async function permits(limit: number, perMs: number, burst = 1) {
  const store = await openStore("sqlite::memory:");
  const { limits } = store.state;
  const calls: string[] = [];
  const state = { away: false, wanted: 0, usable: 0, changes: 0 };
  const recorded: Pick<LimitStore, "take" | "giveBack"> = {
    take: async (args) => {
      if (state.away) throw new Error("away");
      const answer = await limits.take(args);
      calls.push(`take ${answer.outcome}`);
      return answer;
    },
    giveBack: async (args) => {
      const answer = await limits.giveBack(args);
      calls.push(`give back ${answer}`);
      return answer;
    },
  };
  const windows = [{ limit, perMs, burst }];
  const made = new TaskPermits({
    limits: recorded as LimitStore,
    limit: { name: "l", key: "", cost: 1, windows },
    log: SILENT,
    onChange: () => {
      state.changes += 1;
      state.usable = made.want(state.wanted);
    },
  });
  onTestFinished(async () => {
    await made.close();
    await store.close();
  });
  const want = (wanted: number) => {
    state.wanted = wanted;
    state.usable = made.want(wanted);
  };
  const usable = (n: number) => vi.waitFor(() => expect(state.usable).toBe(n), { interval: 5 });
  let others = 0;
  const take = (withinMs: number) =>
    limits.take({ name: "l", key: "", windows, cost: 1, withinMs, request: `other ${++others}` });
  return { permits: made, want, usable, calls, state, take };
}

const tasks = (...tokens: string[]) => tokens.map((token) => ({ id: token, token })) as ClaimedTask[];

it("takes as many as are wanted, and lets each be used when its time has come", async () => {
  const { permits: made, want, usable, state } = await permits(20, 1000);
  want(3);
  const found: number[] = [];
  for (let i = 0; i < 3; i++) {
    await usable(1);
    const [permit] = made.use(1);
    found.push(permit?.at ?? 0);
    want(2 - i);
  }
  expect(found.map((at) => Math.round(at - (found[0] ?? 0)))).toEqual([0, 50, 100]);
  await delay(60);
  expect(state.usable).toBe(0);
});

it("reserves its turn, and little beyond it", async () => {
  const { want, calls, take } = await permits(1, 400);
  want(5);
  // Now, and the one that is due within half a second.
  await vi.waitFor(() => expect(calls).toContain("take later"));
  expect(calls.filter((call) => call === "take granted")).toHaveLength(2);
  const { waitMs } = await take(0);
  expect(waitMs).toBeGreaterThan(400);
  expect(waitMs).toBeLessThanOrEqual(800);
});

it("stands in line also where that is long, and asks nothing meanwhile", async () => {
  const { want, usable, calls, take, state } = await permits(1, 1000);
  await take(0);
  want(3);
  await vi.waitFor(() => expect(calls).toEqual(["take granted", "take later", "take later"]));
  const { changes } = state;
  await delay(300);
  expect(calls).toHaveLength(3);
  expect(state.changes).toBe(changes);
  await usable(1);
});

it("gives back what it does not want any more, as if it had never been taken", async () => {
  const { permits: made, want, usable, calls, take } = await permits(4, 1000);
  want(3);
  await usable(1);
  await vi.waitFor(() => expect(calls.filter((call) => call === "take granted")).toHaveLength(3));
  made.claimed(made.use(1), tasks("a"));
  want(0);
  await vi.waitFor(() => expect(calls.filter((call) => call === "give back given-back")).toHaveLength(2));
  const { waitMs } = await take(0);
  expect(waitMs).toBeGreaterThan(0);
  expect(waitMs).toBeLessThanOrEqual(250);
});

it("gives back what a claim did not need, and that of a task that was not started", async () => {
  const { permits: made, want, usable, calls, take } = await permits(3, 600_000, 3);
  want(3);
  await usable(3);
  made.claimed(made.use(3), tasks("a", "b"));
  want(0);
  await vi.waitFor(() => expect(calls.at(-1)).toBe("give back given-back"));
  expect(await take(0)).toMatchObject({ outcome: "granted" });
  expect(await take(0)).toMatchObject({ outcome: "later" });
  made.returned("unknown");
  made.returned("b");
  made.returned("b");
  await vi.waitFor(() => expect(calls.filter((call) => call.startsWith("give back"))).toHaveLength(2));
});

it("does not use one whose time is long over", async () => {
  const { permits: made, want, usable, state } = await permits(1000, 1000);
  want(1);
  await usable(1);
  await delay(250);
  const now = Date.now();
  want(1);
  expect(state.usable).toBe(0);
  await usable(1);
  expect(made.use(1)[0]?.at).toBeGreaterThanOrEqual(now);
});

it("asks again while the store is away, and gives all back at its end", async () => {
  const { permits: made, want, usable, state, take } = await permits(1, 600_000);
  state.away = true;
  want(2);
  await delay(100);
  expect(state.usable).toBe(0);
  state.away = false;
  await usable(1);
  await made.close();
  expect(made.want(1)).toBe(0);
  expect(await take(0)).toMatchObject({ outcome: "granted" });
});
