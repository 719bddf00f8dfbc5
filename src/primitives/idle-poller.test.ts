import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { IdlePoller } from "./idle-poller.ts";

describe("IdlePoller", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("wakes one place per interval, in turn, however many there are", () => {
    const woken: string[] = [];
    const poller = new IdlePoller(1000);
    for (const name of ["a", "b", "c"]) poller.add(() => woken.push(name));
    vi.advanceTimersByTime(7000);
    expect(woken).toEqual(["a", "b", "c", "a", "b", "c", "a"]);
  });

  it("stops its timer with the last place, and starts again", () => {
    const poller = new IdlePoller(1000);
    const wake = vi.fn<() => void>();
    poller.add(wake);
    poller.remove(wake);
    expect(vi.getTimerCount()).toBe(0);
    poller.add(wake);
    vi.advanceTimersByTime(1000);
    expect(wake).toHaveBeenCalledOnce();
    poller.remove(wake);
    poller.remove(wake);
    expect(vi.getTimerCount()).toBe(0);
  });
});
