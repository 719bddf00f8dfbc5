// The event bus from outside: a plain script, no automation.
//   node examples/host-metrics/watch-alerts.mjs sqlite:examples/host-metrics/.fleet/fleet.db
import { openFleet } from "fleet-framework";

const [store, namespace] = process.argv.slice(2);
if (store === undefined) {
  console.error("usage: node watch-alerts.mjs STORE [NAMESPACE], for example redis://localhost:6379");
  process.exit(2);
}

const fleet = await openFleet({ store, namespace, source: "watch-alerts" });
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void fleet.close());

const alerts = fleet.events.subscribe("alerts.*");
await alerts.ready;
console.log("listening to alerts.*");
for await (const { topic, payload, missed } of alerts) {
  console.log(topic, JSON.stringify(payload), missed > 0 ? `(${missed} missed before)` : "");
}
