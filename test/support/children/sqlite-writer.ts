// Pushes one entry after the other and tells each that was acknowledged, until it is killed.
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import { readInput, tell } from "./ipc.ts";

export interface WriterInput {
  url: string;
  producer: string;
}
export type WriterMessage = { acknowledged: number };

const { url, producer } = await readInput<WriterInput>();
const store = await openSqliteStore(url);
for (let seq = 1; ; seq++) {
  const entries = [{ id: `${seq}`, head: `{"ts":`, tail: `,"payload":${seq}}` }];
  await store.streams.push({ stream: "s", entries, op: { producer, seq } });
  await tell({ acknowledged: seq });
}
