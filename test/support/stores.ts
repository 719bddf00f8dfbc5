// The back ends that the conformance suite runs on, each giving every case a place of its own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isFleetError } from "../../src/errors.ts";
import type { Site, StoreHarness } from "../../src/store/conformance/harness.ts";
import { openStore } from "../../src/store/open.ts";
import type { Store, StoreOptions } from "../../src/store/store.ts";

let made = 0;

/** A namespace that no other test of this run uses. */
export function freshNamespace(): string {
  made += 1;
  return `n${process.pid.toString(36)}-${made.toString(36)}-${Date.now().toString(36)}`;
}

/** A folder of its own under the system's temporary one. */
export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "fleet-test-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 3 }) };
}

export function redisHarness(name: string, url: () => string): StoreHarness {
  return {
    name,
    connections: "many",
    fresh: () => {
      const site = new Opened((namespace, options) => openStore(url(), { ...options, namespace }));
      return Promise.resolve({
        ...site.methods(freshNamespace()),
        dispose: () => site.dispose({ wipe: true }),
      });
    },
  };
}

export function sqliteFileHarness(): StoreHarness {
  return {
    name: "SQLite file",
    connections: "many",
    fresh: () => {
      const folder = temporaryFolder();
      const url = `sqlite:${join(folder.path, "fleet.db")}`;
      const site = new Opened((namespace, options) => openStore(url, { ...options, namespace }));
      const dispose = () => site.dispose({ wipe: false }).finally(() => folder.remove());
      return Promise.resolve({ ...site.methods("n"), dispose });
    },
  };
}

export function sqliteMemoryHarness(): StoreHarness {
  return {
    name: "SQLite in memory",
    connections: "one",
    fresh: () => {
      const stores = new Map<string, Promise<Store>>();
      // One database per handle: whoever opens the same namespace again gets the same handle.
      const site = new Opened((namespace, options) => {
        const store = stores.get(namespace) ?? openStore("sqlite::memory:", { ...options, namespace });
        stores.set(namespace, store);
        return store;
      });
      return Promise.resolve({ ...site.methods("n"), dispose: () => site.dispose({ wipe: false }) });
    },
  };
}

type Open = (namespace: string, options?: StoreOptions) => Promise<Store>;

class Opened {
  readonly #stores = new Map<string, Store[]>();
  readonly #openStore: Open;

  constructor(openStore: Open) {
    this.#openStore = openStore;
  }

  methods(namespace: string): Pick<Site, "open" | "openBeside"> {
    return {
      open: (options) => this.#open(namespace, options),
      openBeside: (beside, options) => this.#open(`${namespace}${beside}`, options),
    };
  }

  async #open(namespace: string, options?: StoreOptions): Promise<Store> {
    const store = await this.#openStore(namespace, options);
    this.#stores.set(namespace, [...(this.#stores.get(namespace) ?? []), store]);
    return store;
  }

  async dispose({ wipe }: { wipe: boolean }): Promise<void> {
    const all = [...this.#stores.entries()];
    if (wipe) await Promise.all(all.map(([namespace]) => this.#openStore(namespace).then(wipeAndClose)));
    await Promise.all(all.flatMap(([, stores]) => stores).map((store) => store.close()));
  }
}

async function wipeAndClose(store: Store): Promise<void> {
  await store.wipe();
  await store.close();
}

/** Opens a store with a short deadline, which on a busy machine may take more than one try. */
export async function openShort(url: string, options: StoreOptions): Promise<Store> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await openStore(url, options);
    } catch (error) {
      if (attempt === 5 || !isFleetError(error, "FLEET_STORE_UNAVAILABLE")) throw error;
    }
  }
}
