import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Gaps } from "./gaps.ts";

describe("Gaps", () => {
  it("counts exactly what was not delivered, whichever events were lost", () => {
    fc.assert(
      fc.property(fc.nat({ max: 50 }), fc.array(fc.boolean()), (baseline, delivered) => {
        const gaps = new Gaps(new Map(baseline === 0 ? [] : [["t", baseline]]));
        let missed = 0;
        let lastDelivered = 0;
        for (const [at, arrives] of delivered.entries()) {
          if (!arrives) continue;
          missed += gaps.observe("t", baseline + at + 1);
          lastDelivered = at + 1;
        }
        const lost = delivered.slice(0, lastDelivered).filter((arrives) => !arrives).length;
        expect(missed).toBe(lost);
      }),
    );
  });

  it("keeps topics apart", () => {
    const gaps = new Gaps(new Map([["a", 10]]));
    expect(gaps.observe("a", 11)).toBe(0);
    expect(gaps.observe("b", 3)).toBe(2);
    expect(gaps.observe("a", 14)).toBe(2);
  });

  it("counts nothing for an event older than its baseline", () => {
    const gaps = new Gaps(new Map([["a", 10]]));
    expect(gaps.observe("a", 9)).toBe(0);
    expect(gaps.observe("a", 10)).toBe(0);
    expect(gaps.observe("a", 12)).toBe(1);
  });

  it("begins anew when the numbering does", () => {
    const gaps = new Gaps(new Map([["a", 10]]));
    gaps.observe("a", 11);
    expect(gaps.observe("a", 3)).toBe(2);
    expect(gaps.observe("a", 4)).toBe(0);
  });
});
