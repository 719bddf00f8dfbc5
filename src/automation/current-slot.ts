import { AsyncLocalStorage } from "node:async_hooks";

/**
 * Which slot's code runs: known through everything that a run starts, timers and listeners too. So what breaks the process is put down
 * to the slot whose code it was.
 */
const scope = new AsyncLocalStorage<number>();

export function inSlot<T>(slotId: number, run: () => T): T {
  return scope.run(slotId, run);
}

export function currentSlot(): number | null {
  return scope.getStore() ?? null;
}
