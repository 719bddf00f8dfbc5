import { describe, expect, it } from "vitest";
import { StoreClock } from "./store-clock.ts";

describe("what is taken for the store's time", () => {
  it("is unknown at first", () => {
    expect(new StoreClock().guess(1000)).toBe(0);
  });

  it("goes on from the time that was told", () => {
    const clock = new StoreClock();
    clock.learn(50_000, 998, 1000);
    expect(clock.guess(1000)).toBe(50_000);
    expect(clock.guess(1250.9)).toBe(50_250);
  });

  it("is never behind a time that was told, whatever answers were slower", () => {
    const clock = new StoreClock();
    clock.learn(50_000, 999, 1000);
    clock.learn(50_100, 1090, 1140);
    expect(clock.guess(1150)).toBe(50_150);
    clock.learn(50_160, 1159, 1159.5);
    expect(clock.guess(1160)).toBe(50_160);
  });

  it("is taken back where it ran ahead of the store, as when a clock was set", () => {
    const clock = new StoreClock();
    clock.learn(50_000, 999, 1000);
    clock.learn(20_000, 1099, 1100);
    expect(clock.guess(1100)).toBe(20_000);
  });

  it("does not take whole milliseconds for a clock that was set", () => {
    const clock = new StoreClock();
    clock.learn(50_000.9, 999.9, 1000);
    clock.learn(50_010, 1010, 1010.5);
    expect(clock.guess(1010.2)).toBe(50_011);
  });
});
