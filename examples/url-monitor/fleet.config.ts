// What runs, and how: `fleet up --config examples/url-monitor/fleet.config.ts`, or `npm run demo`.
import { defineConfig } from "fleet-framework";
import { readSettings } from "./settings.ts";

const { urls, intervalSeconds, slots, localPort } = readSettings(process.env);
const local = localPort !== undefined;

export default defineConfig({
  automations: [
    "./automations/url-pinger.ts",
    "./automations/uptime.ts",
    ...(local ? ["./automations/local-endpoints.ts"] : []),
  ],
  // The state to begin with. Slots are the unit of parallelism: two slots of `url-pinger` share the URLs, wherever they run.
  deploy: {
    // Local endpoints are started beside their watchers, and would be down at the first looks.
    "url-pinger": { slots, config: { urls, intervalSeconds, ...(local ? { startAfter: urls[0] } : {}) } },
    uptime: { slots: 1 },
    ...(local ? { "local-endpoints": { slots: 1, config: { port: localPort } } } : {}),
  },
  // No `store`: a SQLite file beside this file. `--store redis://…` takes the same code to many machines.
});
