// Subscribes and keeps the books from seqs and baselines alone: received, and missed = what the seqs skip.
import { openStore } from "../../../src/store/open.ts";
import { readInput, tell } from "./ipc.ts";

export interface SubscriberInput {
  url: string;
  namespace: string;
  pattern: string;
}
export type SubscriberMessage = { ready: true } | { received: number; missed: number; lastPayload: unknown };

const { url, namespace, pattern } = await readInput<SubscriberInput>();
const store = await openStore(url, { namespace });
const last = new Map<string, number>();
const early: (() => void)[] = [];
let baselined = false;
let received = 0;
let missed = 0;

const watch = store.events.subscribe({ pattern }, ({ topic, seq, payload }) => {
  const note = () => {
    const before = last.get(topic) ?? 0;
    if (seq <= before) return;
    missed += seq - before - 1;
    received += 1;
    last.set(topic, seq);
    // The payloads are large on purpose; only short ones are told.
    const lastPayload = JSON.stringify(payload).length < 100 ? payload : null;
    void tell({ received, missed, lastPayload });
  };
  if (baselined) note();
  else early.push(note);
});
await watch.ready;
for (const [topic, seq] of await watch.baselines) last.set(topic, seq);
baselined = true;
for (const note of early) note();
await tell({ ready: true });
