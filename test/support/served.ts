// Stores behind a link: served as a master serves them, and opened by their address.
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import { openStore } from "../../src/store/open.ts";
import {
  attachStoreServer,
  bearerOf,
  sameToken,
  type StoreServer,
  type StoreServerOptions,
} from "../../src/store/remote/server.ts";
import type { Store, StoreOptions } from "../../src/store/store.ts";
import { SILENT } from "../../src/internal/log.ts";
import type { Site, StoreHarness } from "../../src/store/conformance/harness.ts";

export const TOKEN = "flt_test_0123456789abcdef0123456789abcdef";

export interface ServedStore {
  readonly port: number;
  readonly url: string;
  readonly server: StoreServer;
  readonly http: Server;
  /** Ends the links; the store stays open. */
  close(): Promise<void>;
}

export interface ServeOptions {
  token?: string;
  /** 0 for any. */
  port?: number;
  /** In place of the token. */
  authorise?: StoreServerOptions["authorise"];
}

/** Serves `store` on a port of this machine, with a token. */
export async function serveOn(
  store: Store,
  { token = TOKEN, port = 0, authorise }: ServeOptions = {},
): Promise<ServedStore> {
  const http = createServer((_, response) => response.writeHead(404).end());
  const server = attachStoreServer(http, {
    store,
    authorise: authorise ?? ((request) => sameToken(bearerOf(request), token)),
    log: SILENT,
  });
  http.listen(port, "127.0.0.1");
  await once(http, "listening");
  const { port: bound } = http.address() as { port: number };
  return {
    port: bound,
    url: `http://127.0.0.1:${bound}`,
    server,
    http,
    async close() {
      await server.close();
      http.closeAllConnections();
      http.close();
      await once(http, "close");
    },
  };
}

/** Opens a store through a link. */
export function openServed(url: string, options: StoreOptions = {}): Promise<Store> {
  return openStore(url, { token: TOKEN, ...options });
}

/**
 * The sites of another back end, each store of them served by a master of its own. As in a fleet, all who open a namespace share one connection
 * to the store behind; one that is opened with a clock of its own has a master of its own, too, as clocks are those of stores.
 */
export function remoteHarness(behind: StoreHarness): StoreHarness {
  return {
    name: `Remote, on ${behind.name}`,
    connections: "many",
    fresh: async () => {
      const site = await behind.fresh();
      const masters = new Map<string, Promise<ServedStore>>();
      const links: Store[] = [];
      const clocks: unknown[] = [];
      const link = async (where: string, options: StoreOptions | undefined, open: () => Promise<Store>) => {
        const { clockOffsetMs, frozenNow, ...rest } = options ?? {};
        if (!clocks.includes(frozenNow)) clocks.push(frozenNow);
        const key = `${where}|${clockOffsetMs}|${clocks.indexOf(frozenNow)}`;
        const master = masters.get(key) ?? open().then((store) => serveOn(store));
        masters.set(key, master);
        const { url } = await master;
        const store = await openServed(url, rest);
        links.push(store);
        return store;
      };
      const methods: Pick<Site, "open" | "openBeside"> = {
        open: (options) => link("", options, () => site.open(options)),
        openBeside: (beside, options) => link(beside, options, () => site.openBeside(beside, options)),
      };
      return {
        ...methods,
        dispose: async () => {
          await Promise.all(links.map((store) => store.close()));
          for (const master of masters.values()) await (await master).close();
          await site.dispose();
        },
      };
    },
  };
}
