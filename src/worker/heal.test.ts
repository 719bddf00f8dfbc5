import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HEALTHY, type HealRecord, type SlotHealth } from "../protocol/health.ts";
import { heal, reconsider, type HealSettings } from "./heal.ts";

const SETTINGS: HealSettings = {
  backoffBaseMs: 1000,
  backoffCapMs: 300_000,
  healthyMs: 600_000,
  budgets: [
    { failures: 12, windowMs: 1_800_000 },
    { failures: 60, windowMs: 86_400_000 },
  ],
};
const CODE = { version: "v1", recycles: 0 };
const record = (at: number, more: Partial<HealRecord> = {}): HealRecord => ({
  at,
  cause: "failed",
  collateral: false,
  exitCode: null,
  signal: null,
  error: "Error: boom\n    at x",
  livedMs: 1500,
  ...more,
});

/** A program that lives for so long, every time, until its circuit opens. */
function live(livedMs: number): { gaps: number[]; minutes: number; health: SlotHealth } {
  const gaps: number[] = [];
  let health = HEALTHY;
  let now = 1_000_000;
  for (;;) {
    now += livedMs;
    const next = heal(health, record(now, { livedMs }), CODE, SETTINGS, () => 0);
    health = next.health;
    if (next.retryInMs === null) return { gaps, minutes: (now - 1_000_000) / 60_000, health };
    gaps.push(next.retryInMs);
    now += next.retryInMs;
  }
}

describe("heal", () => {
  it("lets the gaps of a program that dies after 1.5 s grow until the circuit opens", () => {
    const { gaps, health, minutes } = live(1500);
    expect(gaps.slice(0, 9)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256].map((s) => s * 1000));
    expect(gaps).toEqual(gaps.toSorted((a, b) => a - b));
    expect(gaps).toHaveLength(11);
    expect(minutes).toBeLessThan(30);
    expect(health.circuit).toMatchObject({
      version: "v1",
      reason: "12 failures within 30 min; the last: failed: Error: boom",
    });
  });

  it("also opens it for a program that always lives a little longer than unstable", () => {
    const { gaps, minutes } = live(601_000);
    expect(new Set(gaps)).toEqual(new Set([1000]));
    expect(minutes / 60).toBeLessThan(24);
  });

  it("never opens it for one failure an hour", () => {
    let health = HEALTHY;
    for (let hour = 1; hour <= 200; hour++) {
      const next = heal(health, record(hour * 3_600_000, { livedMs: 3_599_000 }), CODE, SETTINGS, () => 0);
      expect(next.retryInMs).toBe(1000);
      health = next.health;
    }
  });

  it("takes nothing from the budget of a slot that lost the store, however often, and never waits long", () => {
    let health = heal(HEALTHY, record(1000), CODE, SETTINGS).health;
    const { failures, spent } = health;
    for (let at = 2000; at < 100_000; at += 1000) {
      const next = heal(health, record(at, { cause: "store-lost" }), CODE, SETTINGS);
      expect(next.retryInMs).toBe(SETTINGS.backoffBaseMs);
      health = next.health;
    }
    expect(health).toMatchObject({ failures, spent, circuit: null });
  });

  it("takes nothing from the budget of a collateral slot", () => {
    const before = heal(HEALTHY, record(1000), CODE, SETTINGS).health;
    const { health, retryInMs } = heal(before, record(2000, { collateral: true }), CODE, SETTINGS);
    expect(retryInMs).toBe(0);
    expect(health).toMatchObject({ failures: before.failures, spent: before.spent, circuit: null });
    expect(health.history).toHaveLength(2);
  });

  it("stays bounded and in range, whatever happens", () => {
    const anyRecord = fc.record({
      step: fc.nat({ max: 4_000_000 }),
      livedMs: fc.nat({ max: 2_000_000 }),
      collateral: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(anyRecord, { maxLength: 200 }), (records) => {
        let health = HEALTHY;
        let now = 0;
        for (const { step, ...more } of records) {
          now += step;
          const next = heal(health, record(now, more), CODE, SETTINGS);
          expect(next.health.history.length).toBeLessThanOrEqual(20);
          expect(next.health.spent.length).toBeLessThanOrEqual(60);
          const pause = next.retryInMs ?? 0;
          expect(pause).toBeGreaterThanOrEqual(0);
          expect(pause).toBeLessThanOrEqual(300_000);
          health = reconsider(next.health, next.retryInMs === null ? { ...CODE, recycles: 1 } : CODE);
        }
      }),
    );
  });
});

describe("reconsider", () => {
  it("keeps a circuit open for the same code, and closes it for new code or after a recycle", () => {
    const { health } = live(10);
    expect(reconsider(health, CODE).circuit).not.toBeNull();
    for (const other of [
      { ...CODE, version: "v2" },
      { ...CODE, recycles: 1 },
    ]) {
      expect(reconsider(health, other)).toMatchObject({ circuit: null, failures: 0, spent: [] });
      expect(reconsider(health, other).history).toEqual(health.history);
    }
  });
});
