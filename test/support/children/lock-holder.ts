// Takes a lock, and tries to extend it when it is told to.
import { isFleetError } from "../../../src/errors.ts";
import { SharedState } from "../../../src/primitives/state.ts";
import { openStore } from "../../../src/store/open.ts";
import { readInput, tell } from "./ipc.ts";

export interface LockHolderInput {
  url: string;
  namespace: string;
  name: string;
  holdSeconds: number;
}
export type LockHolderMessage = { token: string } | { code: string; aborted: boolean; late: string };

const nothing = () => undefined;
const { url, namespace, name, holdSeconds } = await readInput<LockHolderInput>();
const store = await openStore(url, { namespace });
const shared = new SharedState(store, {
  log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
});
const lease = await shared.lock(name, { holdSeconds });
const told = new Promise((resolve) => process.once("message", resolve));
await tell({ token: lease?.token });
await told;
const codeOf = async (call: () => Promise<void>) => {
  try {
    await call();
    return "none";
  } catch (error) {
    return isFleetError(error) ? error.code : String(error);
  }
};
const code = await codeOf(async () => lease?.extend(holdSeconds));
const aborted = lease?.signal.aborted;
const late = await codeOf(async () => lease?.release());
await tell({ code, aborted, late });
await shared.close();
await store.close();
process.disconnect();
