import { z } from "zod";

/** What a `url-pinger` can be told, in `deploy` of the config file. Checked before a slot starts. */
export const PingerConfig = z.object({
  urls: z.array(z.url({ protocol: /^https?$/ })),
  /** From the start of one look at a URL to the start of the next. Be polite to sites of others: 60 is plenty. */
  intervalSeconds: z.number().min(0.1).default(1),
  /** A URL that takes longer counts as down. */
  timeoutSeconds: z.number().positive().max(60).default(5),
  /** Nothing is looked at before a server listens there, for at most 15 s: what has just been started together is not down. */
  startAfter: z.url({ protocol: /^https?$/ }).optional(),
});
