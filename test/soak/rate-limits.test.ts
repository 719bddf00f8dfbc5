// Long (`npm run soak`): a rate that four processes share, for 20 s. 5 s of it run in `npm test` (test/state-handles.test.ts).
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Children, prepareChildren } from "../support/children.ts";
import { limitRace } from "../support/limit-race.ts";
import { PLACES } from "../support/places.ts";

let children: Children;
beforeAll(async () => {
  children = await prepareChildren();
});
afterAll(() => children.dispose());

describe.each(PLACES)("on $name", (place) => {
  it("50 per second by four processes: never more in any second, and at least 95 % of it", async () => {
    const { most, used, each } = await limitRace(children, place, { limit: 50, seconds: 20, processes: 4 });
    expect(most).toBeLessThanOrEqual(50);
    expect(used).toBeGreaterThanOrEqual(0.95);
    expect(Math.min(...each)).toBeGreaterThan(100);
  }, 120_000);
});
