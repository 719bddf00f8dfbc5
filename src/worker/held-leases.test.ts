import { describe, expect, it } from "vitest";
import { HeldLeases } from "./held-leases.ts";

const lease = (slotId: number, token = "1") => ({ automation: "a", slotId, token });

describe("HeldLeases", () => {
  it("holds a lease until its time by the own clock, and lets go of it then", () => {
    const held = new HeldLeases();
    held.granted([lease(0), lease(1)], 100);
    held.renewed([lease(1)], [], 200);
    expect([held.someEndBy(99), held.someEndBy(100)]).toEqual([false, true]);
    expect(held.dropUnsure(99)).toBe(false);
    expect(held.dropUnsure(100)).toBe(true);
    expect(held.all()).toEqual([lease(1)]);
    expect(held.has(lease(0))).toBe(false);
  });

  it("tells that all are over a little before they end, and for a while after, however they were let go of", () => {
    const held = new HeldLeases();
    const over = (now: number) => held.areOver(now, { aheadMs: 10, sinceMs: 50 });
    expect(over(0)).toBe(false);
    held.granted([lease(0), lease(1)], 100);
    held.renewed([lease(1)], [], 200);
    expect([over(95), over(189), over(190)]).toEqual([false, false, true]);
    held.dropUnsure(205);
    expect([over(205), over(255), over(256)]).toEqual([true, true, false]);
    held.granted([lease(0)], 300);
    expect(over(230)).toBe(false);
    // Given back, not outlived.
    held.drop(lease(0));
    expect([over(231), held.dropUnsure(301), over(301)]).toEqual([false, false, false]);
  });

  it("drops what the store says is lost, but not a newer lease on the same slot", () => {
    const held = new HeldLeases();
    held.granted([lease(0, "1"), lease(1, "1")], 100);
    // The answer to an older beat: slot 1 was given back and claimed anew while it was under way.
    held.granted([lease(1, "2")], 150);
    held.renewed([lease(0, "1"), lease(1, "1")], [lease(0, "1"), lease(1, "1")], 300);
    expect(held.all()).toEqual([lease(1, "2")]);
    expect(held.dropUnsure(151)).toBe(true);
  });

  it("is sure of a lease under its own token only", () => {
    const held = new HeldLeases();
    held.granted([lease(0, "2")], 100);
    expect(held.sureUntil(lease(0, "2"))).toBe(100);
    expect(held.sureUntil(lease(0, "1"))).toBeUndefined();
    expect(held.sureUntil(lease(1, "2"))).toBeUndefined();
  });

  it("does not renew what was dropped meanwhile", () => {
    const held = new HeldLeases();
    held.granted([lease(0)], 100);
    expect(held.drop(lease(0))).toMatchObject(lease(0));
    expect(held.drop(lease(0))).toBeUndefined();
    held.renewed([lease(0)], [], 300);
    expect(held.all()).toEqual([]);
  });
});
