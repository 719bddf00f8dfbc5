// A fleet as it stands in a store, without processes: what a worker would have published, and what is desired; and a master on it.
import { onTestFinished } from "vitest";
import { z } from "zod";
import { API_ROOT } from "../../src/client/routes.ts";
import { definePool } from "../../src/contracts/pool.ts";
import { defineBatch, defineContinuous, defineStream, openFleet } from "../../src/index.ts";
import type { Log } from "../../src/internal/log.ts";
import { createMaster } from "../../src/master/create-master.ts";
import type { DesiredAutomation } from "../../src/protocol/spec.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES } from "./places.ts";
import { publish, storeAt, TOKEN } from "./rest.ts";

export const SESSIONS = definePool("sessions", {
  payload: z.object({ cookie: z.string() }),
  tags: z.object({ site: z.string() }),
});
export const PINGS = defineStream("pinger", z.object({ n: z.number() }));
const PINGER = defineContinuous("pinger", {
  config: z.object({ every: z.number().default(1) }),
  output: PINGS,
  runSlot: async () => undefined,
});
const SCRAPER = defineBatch("scraper", {
  tasks: z.object({ url: z.string() }),
  uses: { put: [SESSIONS] },
  runOne: () => undefined,
});

const desired: DesiredAutomation = {
  slots: 2,
  config: { every: 1 },
  paused: false,
  generation: 1,
  deployed: {},
  changedBy: { slots: "deploy", config: "deploy" },
};

/** A SQLite file with the automations `pinger` and `scraper`, and the pool `sessions`; three entries are in the stream `pinger`. */
export async function fleetInStore(): Promise<{ store: Store; url: string; namespace: string }> {
  const [place] = PLACES;
  const { store, url, namespace } = await storeAt(place as (typeof PLACES)[0]);
  await publish(store, [PINGER, SCRAPER]);
  const record = { by: "deploy", note: null };
  for (const name of ["pinger", "scraper"])
    await store.registry.putDesired({ name, desired, expected: 0, record });
  const fleet = await openFleet({ store: url, namespace });
  for (const n of [1, 2, 3]) await fleet.stream(PINGS).push({ n });
  await fleet.close();
  return { store, url, namespace };
}

export interface MasterOfTest {
  /** Where it listens. */
  url: string;
  /** A request with the token. */
  fetch(
    path: string,
    init?: Omit<RequestInit, "headers"> & { headers?: Record<string, string> },
  ): Promise<Response>;
  close(): Promise<void>;
}

export async function masterOn(
  { url: store, namespace }: { url: string; namespace: string },
  log?: Log,
): Promise<MasterOfTest> {
  const master = await createMaster({
    store,
    namespace,
    token: TOKEN,
    port: 0,
    ...(log === undefined ? {} : { log }),
  });
  onTestFinished(() => master.close());
  return {
    url: master.url,
    fetch: (path, init = {}) =>
      fetch(master.url + (path.startsWith("/") ? API_ROOT + path : `/${path}`), {
        ...init,
        headers: { authorization: `Bearer ${TOKEN}`, ...init.headers },
      }),
    close: () => master.close(),
  };
}
