import type { RawClient } from "./redis.ts";

/** What the server spent on `EVALSHA` while `work` ran, in microseconds per call. Whatever else calls scripts counts too. */
export async function scriptMicros(client: RawClient, work: () => Promise<unknown>): Promise<number> {
  const before = await spent(client);
  await work();
  const after = await spent(client);
  return (after.micros - before.micros) / (after.calls - before.calls);
}

async function spent(client: RawClient): Promise<{ calls: number; micros: number }> {
  const info = (await client.sendCommand(["INFO", "commandstats"])) as unknown as string;
  const [, calls = 0, micros = 0] = /^cmdstat_evalsha:calls=(\d+),usec=(\d+)/m.exec(info) ?? [];
  return { calls: Number(calls), micros: Number(micros) };
}
