import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Activity } from "./activity.ts";

describe("Activity", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("counts turns, tells how long it has been quiet, and nested waits", () => {
    const activity = new Activity(() => undefined);
    activity.turn();
    activity.turn();
    vi.advanceTimersByTime(250);
    expect(activity.report(3)).toEqual({ slotId: 3, iterations: 2, quietMs: 250, waiting: false });
    activity.waiting(true);
    activity.waiting(true);
    activity.waiting(false);
    vi.advanceTimersByTime(100);
    expect(activity.report(3)).toMatchObject({ quietMs: 100, waiting: true });
    activity.waiting(false);
    expect(activity.report(3)).toMatchObject({ quietMs: 0, waiting: false });
  });
});
