import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { IdlePoller } from "./idle-poller.ts";
import { QueueWaiters } from "./queue-waiters.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setUp() {
  const watches: { finished: (id: string) => void; up: () => void; closed: boolean }[] = [];
  const over = new Set<string>();
  const looks: (readonly string[])[] = [];
  const ended = (ids: readonly string[]) => {
    looks.push(ids);
    if (over.has("away")) return Promise.reject(new Error("away"));
    return Promise.resolve(ids.filter((id) => over.has(id)));
  };
  const waiters = new QueueWaiters(
    (finished) => {
      let up = () => {};
      const ready = new Promise<void>((resolve) => (up = resolve));
      const watch = { finished, up, closed: false };
      watches.push(watch);
      return { ready, close: () => Promise.resolve(void (watch.closed = true)) };
    },
    ended,
    new IdlePoller(1000),
  );
  return { waiters, watches, over, looks };
}

/** A wait for a task, and how often it was woken. */
function waitFor(waiters: QueueWaiters, id: string) {
  const place = waiters.enter(id);
  const wait = { place, woken: 0 };
  const again = (): void =>
    void place.woken(Number.POSITIVE_INFINITY, undefined).then(() => ((wait.woken += 1), again()));
  again();
  return wait;
}
const settle = () => vi.advanceTimersByTimeAsync(0);

describe("waits for ends of tasks", () => {
  it("share one watch, and a hint wakes only those who wait for that task", async () => {
    const { waiters, watches } = setUp();
    const [a, alsoA, b] = ["a", "a", "b"].map((id) => waitFor(waiters, id));
    expect(watches).toHaveLength(1);
    watches[0]?.finished("a");
    watches[0]?.finished("nobody's");
    await settle();
    expect([a, alsoA, b].map((wait) => wait?.woken)).toEqual([1, 1, 0]);
  });

  it("look again when the watch is up: what ended before made no hint", async () => {
    const { waiters, watches } = setUp();
    const early = waitFor(waiters, "a");
    expect(early.place.covered).toBe(false);
    watches[0]?.up();
    await settle();
    expect(early.woken).toBe(1);
    expect(waiters.enter("b").covered).toBe(true);
  });

  it("hear what was said while they were looking", async () => {
    const { waiters, watches } = setUp();
    const place = waiters.enter("a");
    watches[0]?.finished("a");
    let woken = false;
    void place.woken(1e9, undefined).then(() => (woken = true));
    await settle();
    expect(woken).toBe(true);
    let again = false;
    void place.woken(1e9, undefined).then(() => (again = true));
    await settle();
    expect(again).toBe(false);
  });

  it("are woken by time and by their signal", async () => {
    const { waiters } = setUp();
    const stop = new AbortController();
    const woken: string[] = [];
    void waiters
      .enter("a")
      .woken(50, undefined)
      .then(() => woken.push("by time"));
    void waiters
      .enter("b")
      .woken(1e12, stop.signal)
      .then(() => woken.push("by signal"));
    await vi.advanceTimersByTimeAsync(49);
    expect(woken).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(woken).toEqual(["by time"]);
    stop.abort();
    await settle();
    expect(woken).toEqual(["by time", "by signal"]);
  });

  it("are looked at one after the other, a tenth at each turn, where hints are lost", async () => {
    const { waiters, over, looks } = setUp();
    const waits = Array.from({ length: 25 }, (_, at) => waitFor(waiters, `t${at}`));
    over.add("t1").add("t24");
    await vi.advanceTimersByTimeAsync(1000);
    expect(looks).toEqual([["t0", "t1", "t2"]]);
    expect(waits.flatMap(({ woken }, at) => (woken > 0 ? [at] : []))).toEqual([1]);
    await vi.advanceTimersByTimeAsync(8000);
    // One call a turn, and whoever need not wake sleeps on.
    expect(looks.map((ids) => ids.length)).toEqual(Array(9).fill(3));
    expect(new Set(looks.flat()).size).toBe(25);
    expect(waits.flatMap(({ woken }, at) => (woken > 0 ? [at] : []))).toEqual([1, 24]);
  });

  it("one of them finds out why it cannot be looked at", async () => {
    const { waiters, over } = setUp();
    const waits = Array.from({ length: 25 }, (_, at) => waitFor(waiters, `t${at}`));
    over.add("away");
    await vi.advanceTimersByTimeAsync(2000);
    expect(waits.flatMap(({ woken }, at) => (woken > 0 ? [at] : []))).toEqual([0, 3]);
  });

  it("leave nothing behind: no timer, and no watch some time after the last has left", async () => {
    const { waiters, watches } = setUp();
    for (const id of ["a", "b"]) waiters.enter(id).leave();
    expect(watches).toEqual([expect.objectContaining({ closed: false })]);
    const next = waiters.enter("c");
    await vi.advanceTimersByTimeAsync(20_000);
    expect(watches).toHaveLength(1);
    next.leave();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(watches[0]?.closed).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
    waiters.enter("d");
    expect(watches).toHaveLength(2);
    await waiters.close();
    expect(watches[1]?.closed).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });
});
