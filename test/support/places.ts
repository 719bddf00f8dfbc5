// The stores that several processes can share, for tests that run the built command on both.
import { join } from "node:path";
import { inject } from "vitest";
import { openStore } from "../../src/store/open.ts";
import type { Store } from "../../src/store/store.ts";
import type { SlotStatus } from "../../src/protocol/status.ts";
import { freshNamespace } from "./stores.ts";

export interface Place {
  name: string;
  /** Address and namespace for a project in `dir`: each call a place of its own. */
  at: (dir: string) => { url: string; namespace: string; flags: string[] };
}

const place = (url: string, namespace: string) => ({
  url,
  namespace,
  flags: ["--store", url, "--namespace", namespace],
});

export const PLACES: readonly Place[] = [
  { name: "a SQLite file", at: (dir) => place(`sqlite:${join(dir, "shared.db")}`, "t") },
  { name: "Redis", at: () => place(inject("redisUrl"), freshNamespace()) },
];

/** Set by `npm run soak`. */
const EVERYWHERE = process.env["TEST_STORES"] === "all";

/**
 * For tests that ask the same of every store that passes the conformance suite (of commands, of the API, some of processes): `npm test` runs them on one,
 * `npm run soak` on both.
 */
export function placesFor(name: "a SQLite file" | "Redis"): readonly Place[] {
  return EVERYWHERE ? PLACES : PLACES.filter((one) => one.name === name);
}

export function openPlace({ url, namespace }: { url: string; namespace: string }): Promise<Store> {
  return openStore(url, { namespace });
}

/** Slots that live workers report as running, as `automation/slot` → worker ids. */
export async function runningSlots(store: Store): Promise<Map<string, string[]>> {
  const { workers, now } = await store.registry.view();
  const running = new Map<string, string[]>();
  for (const worker of workers.filter(({ expiresAt }) => expiresAt > now)) {
    for (const slot of worker.slots.filter(({ state }) => state === "running")) {
      const key = `${slot.automation}/${slot.slotId}`;
      running.set(key, [...(running.get(key) ?? []), worker.id]);
    }
  }
  return running;
}

export async function slotStatus(
  store: Store,
  automation: string,
  slotId = 0,
): Promise<SlotStatus | undefined> {
  const { workers, now } = await store.registry.view();
  return workers
    .filter(({ expiresAt }) => expiresAt > now)
    .flatMap(({ slots }) => slots)
    .find((slot) => slot.automation === automation && slot.slotId === slotId);
}
