// The same with the other issuer.
import { defineConfig } from "fleet-framework";

export default defineConfig({
  automations: ["./alternatives/token-issuer-random.ts", "./automations/caller.ts"],
  deploy: { "token-issuer": { slots: 1 }, caller: { slots: 2 } },
});
