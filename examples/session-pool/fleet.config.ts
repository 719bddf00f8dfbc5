// `fleet up --config examples/session-pool/fleet.config.ts`, or `fleet worker` on several machines with `--store redis://…`.
import { defineConfig } from "fleet-framework";

const port = Number(process.env.SHOP_PORT ?? 4490);
const fetchers = Number(process.env.SHOP_FETCHERS ?? 8);
const sessionSeconds = Number(process.env.SHOP_SESSION_SECONDS ?? 20);
const url = `http://127.0.0.1:${port}`;
// An example's passwords. Those of a real site belong into the environment of the worker, not into a config.
const accounts = { ada: "lovelace", grace: "hopper", alan: "turing" };

export default defineConfig({
  automations: ["./automations/*.ts"],
  deploy: {
    shop: { slots: 1, config: { port, accounts, sessionsPerAccount: 2, sessionSeconds, pageMs: 20 } },
    harvester: { slots: 2, config: { url, accounts, sessionSeconds: sessionSeconds * 0.9 } },
    fetcher: { slots: fetchers, config: { url, pauseSeconds: 0.05 } },
    stats: { slots: 1 },
  },
});
