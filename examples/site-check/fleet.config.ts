// Started by `node examples/site-check/run.mjs <url or folder>`, which says in the environment what is to be checked.
import { defineConfig } from "fleet-framework";
import { readSettings } from "./settings.ts";

const { check, start, folder, out, slots, maxDepth, external, pauseSeconds } = readSettings(process.env);

export default defineConfig({
  automations: [
    "./automations/crawler.ts",
    "./automations/link-checker.ts",
    "./automations/report.ts",
    ...(folder === undefined ? [] : ["./automations/site.ts"]),
  ],
  deploy: {
    crawler: { slots, config: { check, start, maxDepth, external, pauseSeconds } },
    "link-checker": { slots: Math.max(2, Math.ceil(slots / 2)) },
    // One slot: it owns the report's files.
    report: { slots: 1, config: { out } },
    ...(folder === undefined
      ? {}
      : { site: { slots: 1, config: { folder, port: Number(new URL(start).port) } } }),
  },
});
