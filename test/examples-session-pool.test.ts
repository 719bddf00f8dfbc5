// Short (`npm test`), 8 s on each store; a minute of it in test/soak/examples-session-pool.test.ts.
import { describe, expect, test } from "vitest";
import { measured } from "./support/heal-fleet.ts";
import { placesFor } from "./support/places.ts";
import { sessionsOf } from "./support/session-pool.ts";

/** Read off the code of `examples/session-pool`: each of its uses, once. */
const GRAPH = [
  "automation:fetcher -emit-> stream:fetcher",
  "automation:harvester -put-> pool:sessions",
  "automation:stats -publish-> topic:shop.stats",
  "pool:sessions -claim-> automation:fetcher",
  "pool:sessions -refill-> queue:harvester",
  "queue:harvester -run-> automation:harvester",
  "stream:fetcher -pop-> automation:stats",
].map((edge) => `${edge}: declared, observed`);

describe.each(placesFor("a SQLite file"))("on $name", (place) => {
  test("three workers lend sessions to each other: none is used by two at once, and no more are made than are missing", async () => {
    const { figures, retired, shop, graph } = await sessionsOf(place, { seconds: 8, sessionSeconds: 3 });
    measured(`sessions, ${place.name}`, JSON.stringify({ ...figures, retired }));
    // It did work, sessions did end, and all three workers took part.
    expect(figures.pages).toBeGreaterThan(100);
    expect(figures.expired).toBeGreaterThan(3);
    expect(shop).toBe("open");
    expect(figures.shared).toBe(0);
    expect(figures.logins).toBeLessThanOrEqual(3 + figures.expired + retired);
    expect(graph).toEqual(GRAPH);
  }, 180_000);
});
