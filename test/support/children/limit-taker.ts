// Takes permits of a rate limit for a while, several at a time, and tells when they were granted.
import { SharedState } from "../../../src/primitives/state.ts";
import { openStore } from "../../../src/store/open.ts";
import { readInput, tell } from "./ipc.ts";

export interface LimitTakerInput {
  url: string;
  namespace: string;
  limit: number;
  seconds: number;
  takers: number;
}
export type LimitTakerMessage = { opened: true } | { grants: number[] };

const nothing = () => undefined;
const { url, namespace, limit, seconds, takers } = await readInput<LimitTakerInput>();
const store = await openStore(url, { namespace });
const shared = new SharedState(store, {
  log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
});
const told = new Promise((resolve) => process.once("message", resolve));
await tell({ opened: true });
await told;

const grants: number[] = [];
const end = performance.now() + seconds * 1000;
await Promise.all(
  Array.from({ length: takers }, async () => {
    const rate = shared.rateLimit("api", { limit, perSeconds: 1 });
    while (performance.now() < end) {
      const taken = await rate.take({ waitSeconds: 10 });
      if (taken.granted) grants.push(taken.at);
    }
  }),
);
await tell({ grants });
await shared.close();
await store.close();
process.disconnect();
