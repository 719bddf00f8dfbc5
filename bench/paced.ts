import type { Helper } from "./helper-process.ts";
import { pause } from "./rounds.ts";

export const PAUSE_MS = 5;

/** Sends `count` stamps with pauses, so that the receiver is idle each time, and answers how old they were on arrival, in microseconds. */
export async function paced(helper: Helper, count: number, send: () => Promise<unknown>): Promise<number[]> {
  await helper.call("takeAges", {});
  for (let i = 0; i < count; i++) {
    await pause(PAUSE_MS);
    await send();
  }
  await pause(50);
  const ages = await helper.call("takeAges", {});
  if (ages.length !== count) throw new Error(`${count} stamps were sent and ${ages.length} arrived`);
  return ages;
}
