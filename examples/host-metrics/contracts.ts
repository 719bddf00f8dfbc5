// What the automations of this example agree on: a stream of readings, and events about those that went too far.
import { defineStream } from "fleet-framework";
import { z } from "zod";

const percent = z.number().min(0).max(100);

/** One reading of one machine. A part is null where this system does not tell; `missing` then says why. */
export const Reading = z.object({
  host: z.string(),
  /** Unix milliseconds. */
  at: z.number().int(),
  cpu: z.object({ usedPercent: percent, cores: z.number().int() }).nullable(),
  memory: z.object({ usedPercent: percent, totalBytes: z.number().int() }).nullable(),
  disk: z.object({ usedPercent: percent, totalBytes: z.number().int(), path: z.string() }).nullable(),
  /** All interfaces but loopback together. */
  network: z
    .object({
      receivedBytesPerSecond: z.number().nonnegative(),
      sentBytesPerSecond: z.number().nonnegative(),
    })
    .nullable(),
  missing: z.array(z.string()),
});
export type Reading = z.infer<typeof Reading>;

export const METRICS_OUT = defineStream("host-metrics", Reading, { ttlSeconds: 600 });

/** What can be too high. */
export const METRICS = ["cpu", "memory", "disk"] as const;
export type Metric = (typeof METRICS)[number];

/** Payload of the events `alerts.cpu`, `alerts.memory` and `alerts.disk`. */
export const Alert = z.object({
  host: z.string(),
  metric: z.enum(METRICS),
  /** `ongoing` repeats an alert for those who were not listening when it was raised. */
  state: z.enum(["raised", "ongoing", "cleared"]),
  usedPercent: percent,
  limitPercent: percent,
  at: z.number().int(),
});
export type Alert = z.infer<typeof Alert>;
