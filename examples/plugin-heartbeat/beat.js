import { hostname, uptime } from "node:os";

export function beat() {
  return { host: hostname(), uptimeSeconds: Math.floor(uptime()) };
}
