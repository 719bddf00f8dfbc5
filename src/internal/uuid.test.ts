import { describe, expect, it } from "vitest";
import { uuidv7 } from "./uuid.ts";

describe("uuidv7", () => {
  it("has the form of RFC 9562 and tells its time", () => {
    const now = Date.now() + 60_000;
    const id = uuidv7(now);
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16)).toBe(now);
  });

  it("sorts in the order in which ids were made, also thousands within one millisecond, and when the clock goes back", () => {
    const now = Date.now() + 120_000;
    const ids = Array.from({ length: 20_000 }, (_, i) => uuidv7(i % 7 === 0 ? now - 50 : now));
    expect(ids).toEqual(ids.toSorted());
    expect(new Set(ids).size).toBe(ids.length);
  });
});
