// Pops a stream until it has been empty for a while and prints the ids it got, one per line.
// Arguments: store, namespace, stream.
import { z } from "zod";
import { defineStream, openFleet } from "fleet-framework";

const [store, namespace, name] = process.argv.slice(2);
const fleet = await openFleet({ store, namespace });
const stream = fleet.stream(defineStream(name, z.object({ n: z.number() })));
process.stdout.write("ready\n");
for (;;) {
  const entries = await stream.popEnvelopes({ n: 100, waitSeconds: 3 });
  if (entries.length === 0) break;
  process.stdout.write(entries.map((entry) => `${entry.payload.n} ${entry.id}\n`).join(""));
}
await fleet.close();
