// The session-pool example with three worker processes; what the shop itself has counted.
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { onTestFinished, vi } from "vitest";
import type { ShopFigures } from "../../examples/session-pool/shop.ts";
import { makeProject, startFleet } from "./cli.ts";
import { graphLines } from "./graph.ts";
import { openPlace, type Place } from "./places.ts";
import { freePort } from "./redis.ts";

const CONFIG = fileURLToPath(new URL("../../examples/session-pool/fleet.config.ts", import.meta.url));

export interface Sessions {
  figures: ShopFigures;
  /** Sessions that fetchers took out of the pool because the shop did not know them any more. */
  retired: number;
  shop: "open" | "closed";
  /** What `fleet graph` shows of it at the end. */
  graph: string[];
}

export async function sessionsOf(
  place: Place,
  { seconds, sessionSeconds }: { seconds: number; sessionSeconds: number },
): Promise<Sessions> {
  const dir = makeProject();
  const at = place.at(dir);
  const store = await openPlace(at);
  onTestFinished(() => store.close());
  const port = await freePort();
  const env = { SHOP_PORT: String(port), SHOP_SESSION_SECONDS: String(sessionSeconds) };
  const workers = ["one", "two", "three"].map((id) =>
    startFleet(["worker", "--id", id, "--config", CONFIG, ...at.flags], {
      cwd: dir,
      env: { ...env, FLEET_DATA_DIR: `${dir}/${id}` },
    }),
  );
  const figures = async () => (await (await fetch(`http://127.0.0.1:${port}/figures`)).json()) as ShopFigures;
  await vi.waitFor(
    async () => {
      const { pages } = await figures();
      if (pages < 20) throw new Error(`only ${pages} pages yet`);
    },
    { timeout: 90_000, interval: 100 },
  );
  await delay(seconds * 1000);
  const { workers: live, now } = await store.registry.view();
  const busy = live.filter(
    ({ expiresAt, slots }) => expiresAt > now && slots.some(({ state }) => state === "running"),
  );
  if (busy.length < 3) throw new Error(`only ${busy.length} workers run slots`);
  // The shop goes with its worker, so it is asked before they end.
  const last = await figures();
  const counts = await store.pools.count({ pool: "sessions", where: {} });
  const stats = await store.pools.stats({ pool: "sessions" });
  for (const worker of workers) worker.signal("SIGTERM");
  await Promise.all(workers.map(({ ended }) => ended));
  return {
    figures: last,
    retired: Math.max(counts.retired, stats?.totals.retired ?? 0),
    shop: last.pages > 0 ? "open" : "closed",
    graph: await graphLines(at.flags, dir),
  };
}
