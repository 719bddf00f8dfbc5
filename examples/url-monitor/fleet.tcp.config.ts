// The same monitor with another producer: only the file that defines `url-pinger` differs.
import { defineConfig } from "fleet-framework";
import config from "./fleet.config.ts";

export default defineConfig({
  ...config,
  automations: config.automations.map((file) =>
    file === "./automations/url-pinger.ts" ? "./alternatives/url-pinger-tcp.ts" : file,
  ),
});
