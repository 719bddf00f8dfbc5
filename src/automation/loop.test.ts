import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LoopOptions } from "./context.ts";
import { turns } from "./loop.ts";

function setup(options?: LoopOptions) {
  const abort = new AbortController();
  const seen: string[] = [];
  const hooks = {
    begin: () => undefined,
    turn: () => void seen.push("turn"),
    waiting: (on: boolean) => void seen.push(on ? "waits" : "goes on"),
  };
  return { abort, seen, loop: turns(options, abort.signal, hooks) };
}

describe("turns", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  it("yields at once, then from start to start", async () => {
    const { loop, abort } = setup({ everySeconds: 10 });
    const at: number[] = [];
    const began = performance.now();
    const done = (async () => {
      for await (const { index } of loop) {
        at.push(performance.now() - began);
        expect(index).toBe(at.length - 1);
        await new Promise((resolve) => setTimeout(resolve, 3000));
        if (index === 2) abort.abort();
      }
    })();
    await vi.advanceTimersByTimeAsync(60_000);
    await done;
    expect(at).toEqual([0, 10_000, 20_000]);
  });

  it("follows a long turn at once, without catching up", async () => {
    const { loop, abort } = setup({ everySeconds: 1 });
    const at: number[] = [];
    const began = performance.now();
    const done = (async () => {
      for await (const { index } of loop) {
        at.push(performance.now() - began);
        if (index === 0) await new Promise((resolve) => setTimeout(resolve, 5500));
        if (index === 3) abort.abort();
      }
    })();
    await vi.waitFor(
      () => vi.advanceTimersByTimeAsync(100).then(() => expect(abort.signal.aborted).toBe(true)),
      {
        timeout: 5000,
        interval: 0,
      },
    );
    await done;
    expect(at).toEqual([0, 5500, 6500, 7500]);
  });

  it("counts a turn when it is over, says when it waits, and ends a wait on abort", async () => {
    const { loop, abort, seen } = setup({ everySeconds: 3600 });
    await loop.next();
    expect(seen).toEqual([]);
    const next = loop.next();
    await vi.advanceTimersByTimeAsync(10);
    expect(seen).toEqual(["turn", "waits"]);
    abort.abort();
    expect(await next).toEqual({ done: true, value: undefined });
    expect(seen).toEqual(["turn", "waits", "goes on"]);
  });

  it("lets the abort through in a loop without a pause", async () => {
    vi.useRealTimers();
    const { loop, abort } = setup();
    setTimeout(() => abort.abort(), 5);
    let count = 0;
    for await (const _ of loop) count += 1;
    expect(count).toBeGreaterThan(1);
  });

  it("yields nothing after the abort, and refuses wrong options", async () => {
    const { loop, abort } = setup();
    abort.abort();
    expect(await loop.next()).toMatchObject({ done: true });
    await expect(setup({ everySeconds: -1 }).loop.next()).rejects.toThrow(
      "loop: everySeconds must be at least 0",
    );
    await expect(setup({ everySecond: 1 } as object).loop.next()).rejects.toThrow(
      'did you mean "everySeconds"?',
    );
  });
});
