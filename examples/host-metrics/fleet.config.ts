// `fleet up --config examples/host-metrics/fleet.config.ts`; LIMIT_CPU=20 (or LIMIT_MEMORY, LIMIT_DISK) before it shows an alert soon.
import { defineConfig } from "fleet-framework";

const limit = (name: string) => Number(process.env[name] ?? 90);

export default defineConfig({
  automations: ["./automations/*.ts"],
  deploy: {
    "host-metrics": { slots: 1 },
    thresholds: {
      slots: 1,
      config: {
        limits: { cpu: limit("LIMIT_CPU"), memory: limit("LIMIT_MEMORY"), disk: limit("LIMIT_DISK") },
        repeatSeconds: Number(process.env.REPEAT_SECONDS ?? 30),
      },
    },
    alerts: { slots: 1 },
  },
});
