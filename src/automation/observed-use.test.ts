import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FleetError } from "../errors.ts";
import { SILENT } from "../internal/log.ts";
import type { EdgeCount, EdgeStore } from "../store/edge-store.ts";
import { ObservedUse } from "./observed-use.ts";

const FROM = { kind: "automation", name: "a" } as const;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

/** What is told to the store, call by call; `fail` is thrown by the next. */
function told(given: { fail?: Error; hang?: boolean } = {}) {
  const calls: EdgeCount[][] = [];
  const state = { ...given };
  const store: Pick<EdgeStore, "observe"> = {
    async observe({ from, edges }) {
      expect(from).toEqual(FROM);
      calls.push([...edges]);
      const { fail } = state;
      delete state.fail;
      if (fail !== undefined) throw fail;
      if (state.hang === true) await new Promise(() => undefined);
    },
  };
  const use = new ObservedUse({ store: store as EdgeStore, from: FROM, log: SILENT });
  return { use, calls, state };
}
const later = (ms: number) => vi.advanceTimersByTimeAsync(ms);
/** The longest that the first report may take. */
const REPORT = 6250;

it("gathers what is used and tells it in one call", async () => {
  const { use, calls } = told();
  for (let i = 0; i < 1000; i++) use.onUse("emit", "a", 2);
  use.onUse("pop", "x", 3);
  use.onUse("pop", "y", 0);
  await later(4900);
  expect(calls).toEqual([]);
  await later(REPORT - 4900);
  expect(calls).toEqual([
    [
      { direction: "emit", name: "a", count: 2000 },
      { direction: "pop", name: "x", count: 3 },
      { direction: "pop", name: "y", count: 0 },
    ],
  ]);
});

it("tells no more often than every five seconds, whatever is used", async () => {
  const { use, calls } = told();
  for (let ms = 0; ms < 60_000; ms += 10) {
    use.onUse("emit", "a", 1);
    await later(10);
  }
  expect(calls.length).toBeGreaterThan(8);
  expect(calls.length).toBeLessThanOrEqual(12);
  await use.close();
  expect(calls.flat().reduce((sum, { count }) => sum + count, 0)).toBe(6000);
});

it("says nothing while nothing is used, nor again and again that nothing comes", async () => {
  const { use, calls } = told();
  await later(60_000);
  expect(vi.getTimerCount()).toBe(0);
  // A poll of an empty stream.
  for (let s = 0; s < 590; s++) {
    use.onUse("pop", "x", 0);
    await later(1000);
  }
  expect(calls).toEqual([[{ direction: "pop", name: "x", count: 0 }]]);
  for (let s = 0; s < 30; s++) {
    use.onUse("pop", "x", 0);
    await later(1000);
  }
  expect(calls).toHaveLength(2);
  await later(3_600_000);
  expect(calls).toHaveLength(2);
});

it("tells at the end what is left, and nothing after it", async () => {
  const { use, calls } = told();
  use.onUse("submit", "q", 1);
  await use.close();
  expect(calls).toEqual([[{ direction: "submit", name: "q", count: 1 }]]);
  use.onUse("submit", "q", 1);
  use.onUse("submit", "other", 1);
  await later(60_000);
  await use.close();
  expect(calls).toHaveLength(1);
});

it("does not hold up the end when the store does not answer", async () => {
  const { use, calls } = told({ hang: true });
  use.onUse("submit", "q", 1);
  const closed = vi.fn<() => void>();
  void use.close().then(closed);
  await later(999);
  expect([calls.length, closed.mock.calls.length]).toEqual([1, 0]);
  await later(1);
  expect(closed).toHaveBeenCalledOnce();
});

it("tells again what the store has surely not counted, and nothing twice that it may have", async () => {
  const { use, calls, state } = told();
  const lost = (outcome?: "unknown") =>
    new FleetError("FLEET_STORE_UNAVAILABLE", "away", { retryable: true, outcome });
  state.fail = lost();
  use.onUse("pop", "x", 3);
  use.onUse("pop", "y", 0);
  await later(REPORT);
  use.onUse("pop", "x", 2);
  await later(REPORT);
  expect(calls).toEqual([
    [
      { direction: "pop", name: "x", count: 3 },
      { direction: "pop", name: "y", count: 0 },
    ],
    [
      { direction: "pop", name: "x", count: 5 },
      { direction: "pop", name: "y", count: 0 },
    ],
  ]);
  state.fail = lost("unknown");
  use.onUse("pop", "x", 7);
  await later(REPORT);
  use.onUse("pop", "x", 1);
  await later(REPORT);
  expect(calls.slice(2).flat()).toEqual([
    { direction: "pop", name: "x", count: 7 },
    { direction: "pop", name: "x", count: 1 },
  ]);
});

it("counts no more than so many names at a time, and forgets those of which all is told", async () => {
  const { use, calls } = told();
  for (let i = 0; i < 10_000; i++) use.onUse("publish", `t${i}`, 1);
  await later(3 * REPORT);
  expect(calls.map((edges) => edges.length)).toEqual([200, 200, 100]);
  expect(calls.flat().map(({ name }) => name)).toEqual(Array.from({ length: 500 }, (_, i) => `t${i}`));
  // One that is always in use stays; new ones find room.
  calls.length = 0;
  for (let i = 0; i < 2000; i++) {
    use.onUse("emit", "a", 1);
    if (i > 1000) use.onUse("publish", `new${i}`, 1);
    await later(50);
  }
  await later(10 * REPORT);
  const names = calls.flat().map(({ name }) => name);
  expect(names).toContain("new1999");
  expect(new Set(names).size).toBe(1000);
});
