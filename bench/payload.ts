import { z } from "zod";
import { defineStream } from "../src/contracts/stream.ts";

/** What the benchmarks send: a small measurement, checked by a schema as users write them. */
export const Ping = z.object({ url: z.url(), ok: z.boolean(), ms: z.number(), ts: z.number() });
export type Ping = z.infer<typeof Ping>;

export const PINGS = defineStream("pings", Ping);

/** Carries the sender's monotonic clock, which all processes of a machine share, as text: nanoseconds do not fit a number. */
export const STAMPS = defineStream("stamps", z.object({ sent: z.string() }));

export function samplePing(index: number): Ping {
  return {
    url: `https://example.com/page/${index % 1000}`,
    ok: true,
    ms: 12.5,
    ts: 1_790_000_000_000 + index,
  };
}

export function now(): string {
  return process.hrtime.bigint().toString();
}

/** Microseconds since `sent`. */
export function sinceMicros(sent: string): number {
  return Number(process.hrtime.bigint() - BigInt(sent)) / 1000;
}

let written = 0;
/** The same payload as an entry made by hand, as without Fleet: unique by a counter, stamped with local time. */
export function handMadeEntry(payload: Ping): string {
  const json = JSON.stringify(payload);
  return `{"id":"${++written}","slot_id":null,"ts":${Date.now()},"payload":${json}}`;
}
