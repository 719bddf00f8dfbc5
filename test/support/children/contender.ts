// Pushes to and pops from one stream as fast as it can for a while; tells what it pushed and got, each error, and how
// long its event loop was held up.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { uuidv7 } from "../../../src/internal/uuid.ts";
import { entryTemplate } from "../../../src/protocol/envelope.ts";
import { openStore } from "../../../src/store/open.ts";
import { readInput, tell } from "./ipc.ts";

export interface ContenderInput {
  url: string;
  namespace: string;
  stream: string;
  seconds: number;
  /** Entries it pushes are `who * 10 000 000 + i`. */
  who: number;
  /** Spends its time without the store instead: what its event loop suffers is the machine's doing. */
  control?: boolean;
}
export type ContenderMessage =
  | { opened: true }
  | { pushed: number; got: number[]; errors: string[]; calls: number; lagP99Ms: number };

const { url, namespace, stream, seconds, who, control } = await readInput<ContenderInput>();
const store = await openStore(url, { namespace });
await tell({ opened: true });
await new Promise((resolve) => process.once("message", resolve));

const lag = monitorEventLoopDelay({ resolution: 5 });
lag.enable();
const errors: string[] = [];
const got: number[] = [];
const producer = uuidv7();
let pushed = 0;
let calls = 0;
const end = performance.now() + seconds * 1000;
for (let seq = 1; performance.now() < end; seq++) {
  try {
    if (control === true) {
      const spin = performance.now() + 0.2;
      while (performance.now() < spin);
      await new Promise((resolve) => setImmediate(resolve));
      continue;
    }
    const entries = [0, 1, 2].map((i) =>
      entryTemplate(uuidv7(), null, String(who * 10_000_000 + pushed + i)),
    );
    await store.streams.push({ stream, entries, op: { producer, seq } });
    pushed += entries.length;
    const raws = await store.streams.pop({ stream, n: 3 });
    for (const raw of raws) got.push((JSON.parse(raw) as { payload: number }).payload);
    calls += 2;
  } catch (error) {
    errors.push(String(error));
  }
}
lag.disable();
await store.close();
await tell({ pushed, got, errors, calls, lagP99Ms: lag.percentile(99) / 1e6 });
process.disconnect();
