// What the two automations agree on. Neither imports the other: `uptime` works with whatever automation is named `url-pinger` and
// emits this shape, on whichever machine it runs.
import { defineStream } from "fleet-framework";
import { z } from "zod";

/** One look at one URL. */
export const Measurement = z.object({
  url: z.url(),
  /** Whether it answered as it should. */
  ok: z.boolean(),
  /** HTTP status; null when no answer came, or when the producer does not speak HTTP. */
  status: z.number().int().nullable(),
  /** Milliseconds until the answer, or until it failed. */
  latencyMs: z.number().nonnegative(),
  /** Why no answer came; null when one did. */
  error: z.string().nullable(),
  /** When that was, Unix milliseconds. */
  at: z.number().int(),
});
export type Measurement = z.infer<typeof Measurement>;

/** A stream bears the name of the automation that fills it. */
export const PINGER_OUT = defineStream("url-pinger", Measurement);
