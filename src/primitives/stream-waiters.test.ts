import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { IdlePoller } from "./idle-poller.ts";
import { StreamWaiters } from "./stream-waiters.ts";

const POLL_MS = 1000;

function setup() {
  let hint: (() => void) | undefined;
  let watches = 0;
  let open = 0;
  const waiters = new StreamWaiters((onHint) => {
    watches += 1;
    open += 1;
    hint = onHint;
    return {
      ready: Promise.resolve(),
      close: () => {
        open -= 1;
        return Promise.resolve();
      },
    };
  }, new IdlePoller(POLL_MS));
  return { waiters, hint: () => hint?.(), watches: () => watches, open: () => open };
}

/** Starts to wait and tells whether that is over. */
function waiting(waiters: StreamWaiters, ms = 60_000, signal?: AbortSignal) {
  const state = { over: false };
  void waiters.wait(ms, signal).then(() => (state.over = true));
  return state;
}

describe("StreamWaiters", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const settle = () => vi.advanceTimersByTimeAsync(0);
  /** Enters, and takes the one look that the watch asks for when it is up. */
  const enter = async (waiters: StreamWaiters) => {
    waiters.enter();
    await settle();
    await waiters.wait(60_000, undefined);
  };

  it("lets one look once more when its watch is up: what came before made no hint", async () => {
    const { waiters } = setup();
    waiters.enter();
    const [first, second] = [waiting(waiters), waiting(waiters)];
    await settle();
    expect([first.over, second.over]).toEqual([true, false]);
  });

  it("wakes the first in line on a hint, and the next when that one passes it on", async () => {
    const { waiters, hint } = setup();
    await enter(waiters);
    const [first, second] = [waiting(waiters), waiting(waiters)];
    hint();
    await settle();
    expect([first.over, second.over]).toEqual([true, false]);
    waiters.passOn();
    await settle();
    expect(second.over).toBe(true);
  });

  it("does not lose a hint that comes while everybody is looking", async () => {
    const { waiters, hint } = setup();
    await enter(waiters);
    hint();
    const [first, second] = [waiting(waiters), waiting(waiters)];
    await settle();
    expect([first.over, second.over]).toEqual([true, false]);
  });

  it("wakes by the poller when hints are lost", async () => {
    const { waiters } = setup();
    await enter(waiters);
    const one = waiting(waiters);
    await vi.advanceTimersByTimeAsync(POLL_MS - 1);
    expect(one.over).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(one.over).toBe(true);
  });

  it("ends a wait at its time and on abort, and such a waiter takes no hint from others", async () => {
    const { waiters, hint } = setup();
    await enter(waiters);
    const abort = new AbortController();
    const [late, aborted, third] = [
      waiting(waiters, 50),
      waiting(waiters, 60_000, abort.signal),
      waiting(waiters),
    ];
    await vi.advanceTimersByTimeAsync(50);
    abort.abort();
    await settle();
    expect([late.over, aborted.over, third.over]).toEqual([true, true, false]);
    hint();
    await settle();
    expect(third.over).toBe(true);
  });

  it("does not wait with a signal that is aborted already", async () => {
    const { waiters } = setup();
    await enter(waiters);
    const one = waiting(waiters, 60_000, AbortSignal.abort());
    await settle();
    expect(one.over).toBe(true);
  });

  it("keeps one watch for all and for a while after the last, then closes it", async () => {
    const { waiters, watches, open } = setup();
    for (let turn = 0; turn < 5; turn++) {
      waiters.enter();
      waiters.enter();
      waiters.leave();
      waiters.leave();
      await vi.advanceTimersByTimeAsync(5000);
    }
    expect([watches(), open()]).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect([watches(), open()]).toEqual([1, 0]);
    expect(vi.getTimerCount()).toBe(0);
    waiters.enter();
    expect([watches(), open()]).toEqual([2, 1]);
  });

  it("wakes everybody when it is closed", async () => {
    const { waiters, open } = setup();
    waiters.enter();
    const all = [waiting(waiters), waiting(waiters), waiting(waiters)];
    await waiters.close();
    expect(all.every(({ over }) => over)).toBe(true);
    expect(open()).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});
