import { expect } from "vitest";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import { LimitDriver, perWindow } from "./state-driver.ts";
import type { LimitWindow } from "../state-store.ts";

/** A small generator of its own, so that a failure can be repeated. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

interface Grant {
  at: number;
  cost: number;
}

/** The most permits in any span of `perMs` that begins at a grant, its end not included. */
export function mostWithin(grants: readonly Grant[], perMs: number): number {
  const sorted = grants.toSorted((a, b) => a.at - b.at);
  let [most, sum, end] = [0, 0, 0];
  for (const { at, cost } of sorted) {
    for (; end < sorted.length && (sorted[end] as Grant).at < at + perMs; end++)
      sum += (sorted[end] as Grant).cost;
    most = Math.max(most, sum);
    sum -= cost;
  }
  return most;
}

/** Whole steps, steps that do not divide the window, bursts, several windows at once. */
const SETS: LimitWindow[][] = [
  [perWindow(50, 1000)],
  [perWindow(3, 1000)],
  [perWindow(7, 100, 5)],
  [perWindow(10, 1000, 10)],
  [perWindow(10, 1000, 2), perWindow(30, 6000, 30), perWindow(17, 2500)],
];

export function limitProperties(harness: StoreHarness): void {
  siteCase(
    harness,
    "over any span of a window no more than limit + burst - 1 are granted, whatever the clocks of those who ask say",
    async ({ open }) => {
      const clock = new HandClock();
      // Three callers whose clocks differ by up to half a second: the store in memory is one caller with one clock.
      const offsets = harness.connections === "many" ? [0, 300, -200] : [0];
      const stores = await Promise.all(offsets.map((offset) => open({ frozenNow: () => clock.ms + offset })));
      for (const [set, windows] of SETS.entries()) {
        const next = random(set + 1);
        const limits = stores.map((store) => new LimitDriver(store, windows, `set ${set}`));
        const grants: Grant[] = [];
        const smallest = Math.min(...windows.map(({ burst }) => burst));
        for (const _ of range(0, 150)) {
          const answers = await Promise.all(
            range(0, 3).map(async () => {
              const limit = limits[Math.floor(next() * limits.length)] as LimitDriver;
              const cost = 1 + Math.floor(next() * smallest * 1.3);
              const answer = await limit.take({ cost, withinMs: next() < 0.3 ? next() * 500 : 0 });
              return { ...answer, cost, limit };
            }),
          );
          for (const { outcome, at, cost, limit } of answers) {
            if (outcome === "later") continue;
            if (next() < 0.1 && (await limit.giveBack(at, cost)) === "given-back") continue;
            grants.push({ at, cost });
          }
          clock.advance(Math.floor(next() * (1000 / (windows[0]?.limit ?? 1))));
        }
        expect(grants.length).toBeGreaterThan(20);
        for (const { limit, perMs, burst } of windows) {
          const most = mostWithin(grants, perMs);
          expect({ set, perMs, within: most <= limit + burst - 1, most }).toMatchObject({ within: true });
        }
        // And it is used: who asks all the time gets nearly all there is.
        clock.advance(60_000);
      }
    },
  );

  siteCase(harness, "whoever asks all the time gets all that the limit allows", async ({ open }) => {
    const clock = new HandClock();
    const limit = new LimitDriver(await open(clock.options), [perWindow(30, 1000)]);
    const grants: Grant[] = [];
    for (const _ of range(0, 400)) {
      const { outcome, at } = await limit.take();
      if (outcome === "granted") grants.push({ at, cost: 1 });
      clock.advance(5);
    }
    expect(mostWithin(grants, 1000)).toBeLessThanOrEqual(30);
    // 30 per second for 2 seconds; a look every 5 ms finds a permit up to 5 ms late.
    expect(grants.length).toBeGreaterThanOrEqual(Math.floor(2000 / 35));
    const reserved = await Promise.all(range(0, 60).map(() => limit.take({ withinMs: 1e9 })));
    const last = Math.max(...reserved.map(({ at }) => at));
    // 60 reservations fill two seconds to the millisecond.
    expect(last - clock.ms).toBeGreaterThan(1900);
    expect(last - clock.ms).toBeLessThanOrEqual(2000);
  });
}
