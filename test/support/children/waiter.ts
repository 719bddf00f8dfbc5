// Waits for hints of one stream and pops at each; tells what it got. It never looks by itself.
import { openStore } from "../../../src/store/open.ts";
import { readInput, tell } from "./ipc.ts";

export interface WaiterInput {
  url: string;
  namespace: string;
  stream: string;
}
export type WaiterMessage = { ready: true } | { got: unknown };

const { url, namespace, stream } = await readInput<WaiterInput>();
const store = await openStore(url, { namespace });
let last: Promise<void> = Promise.resolve();
const watch = store.streams.watch({ stream }, () => {
  last = last.then(async () => {
    for (const raw of await store.streams.pop({ stream, n: 10 }))
      await tell({ got: (JSON.parse(raw) as { payload: unknown }).payload });
  });
});
await watch.ready;
await tell({ ready: true });
