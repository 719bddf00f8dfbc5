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
      // What is left in the namespace goes with the throw-away server.
      return Promise.resolve({ ...site.methods(freshNamespace()), dispose: () => site.dispose() });
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
      const dispose = () => site.dispose().finally(() => folder.remove());
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
      return Promise.resolve({ ...site.methods("n"), dispose: () => site.dispose() });
    },
  };
}

type Open = (namespace: string, options?: StoreOptions) => Promise<Store>;

class Opened {
  readonly #stores: Store[] = [];
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
    this.#stores.push(store);
    return store;
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.close()));
  }
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
