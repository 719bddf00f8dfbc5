// Long (`npm run soak`): a minute of the session pool on each store. 8 s of it run in `npm test`.
import { describe, expect, test } from "vitest";
import { measured } from "../support/heal-fleet.ts";
import { PLACES } from "../support/places.ts";
import { sessionsOf } from "../support/session-pool.ts";

describe.each(PLACES)("on $name", (place) => {
  test("a minute with three workers: no session used by two at once, logins no more than were missing", async () => {
    const { figures, retired } = await sessionsOf(place, { seconds: 60, sessionSeconds: 8 });
    measured(`sessions in a minute, ${place.name}`, JSON.stringify({ ...figures, retired }));
    expect(figures.pages).toBeGreaterThan(500);
    expect(figures.expired).toBeGreaterThan(10);
    expect(figures.shared).toBe(0);
    expect(figures.logins).toBeLessThanOrEqual(3 + figures.expired + retired);
  }, 180_000);
});
