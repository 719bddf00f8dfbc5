import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { after, MAX_TIMEOUT_MS, sleep } from "./timers.ts";

describe("timers", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("keeps delays that are longer than one timer can be", () => {
    const fired = vi.fn<() => void>();
    after(MAX_TIMEOUT_MS * 2 + 10, fired);
    vi.advanceTimersByTime(MAX_TIMEOUT_MS * 2 + 9);
    expect(fired).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(fired).toHaveBeenCalledOnce();
  });

  it("can be cancelled", () => {
    const fired = vi.fn<() => void>();
    after(10, fired).cancel();
    vi.advanceTimersByTime(100);
    expect(fired).not.toHaveBeenCalled();
  });

  it("sleeps until the time is over, or the signal aborts, and leaves no timer behind", async () => {
    const whole = sleep(1000);
    await vi.advanceTimersByTimeAsync(1000);
    await whole;
    const abort = new AbortController();
    const cut = sleep(1000, abort.signal);
    abort.abort();
    await cut;
    await sleep(1000, abort.signal);
    expect(vi.getTimerCount()).toBe(0);
  });
});
