// Pops one stream until it has been empty for a while, or until it has as many as it may take; tells what it got.
import { openStore } from "../../../src/store/open.ts";
import { readInput, tell } from "./ipc.ts";

export interface ConsumerInput {
  url: string;
  namespace: string;
  stream: string;
  n: number;
  /** Stops after this many entries, without using them, and waits to be killed. */
  limit?: number;
}
/** Payloads are whole numbers here. */
export type ConsumerMessage = { taken: number[]; done: boolean } | { opened: true };

const { url, namespace, stream, n, limit } = await readInput<ConsumerInput>();
const store = await openStore(url, { namespace });
await tell({ opened: true });
await new Promise((resolve) => process.once("message", resolve));
const taken: number[] = [];
for (;;) {
  const raws = await store.streams.pop({ stream, n });
  for (const raw of raws) taken.push((JSON.parse(raw) as { payload: number }).payload);
  if (limit !== undefined && taken.length >= limit) {
    await tell({ taken, done: false });
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  }
  if (raws.length === 0) break;
}
await store.close();
await tell({ taken, done: true });
process.disconnect();
