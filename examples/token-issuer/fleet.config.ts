// The issuer alone, or the caller alone: `--only token-issuer`, `--only caller`, in two processes.
import { defineConfig } from "fleet-framework";

export default defineConfig({
  automations: ["./automations/*.ts"],
  deploy: { "token-issuer": { slots: 1 }, caller: { slots: 2 } },
});
