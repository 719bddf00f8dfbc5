// Does nothing but measure how late its own timers are: what the machine's load alone costs.
import { readInput, tell } from "./ipc.ts";

export interface IdleInput {
  forMs: number;
}
export type IdleMessage = { lagMs: number[] };

const { forMs } = await readInput<IdleInput>();
const lagMs: number[] = [];
const end = performance.now() + forMs;
while (performance.now() < end) {
  const expected = performance.now() + 10;
  await new Promise((resolve) => setTimeout(resolve, 10));
  lagMs.push(Math.max(0, performance.now() - expected));
}
await tell({ lagMs });
process.disconnect();
