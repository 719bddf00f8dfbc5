// What the automations of this project share: a pool of sessions, the queue that fills it, a stream of what was fetched, an event.
import { definePool, defineQueue, defineStream, defineTopic } from "fleet-framework/contracts";
import { z } from "zod";

/** Asks for one more login. */
export const HARVESTER = defineQueue("harvester", {
  payload: z.object({ site: z.string() }),
  maxAttempts: 3,
  timeoutSeconds: 20,
});

/** Sessions that are logged in, lent to one user at a time. */
export const SESSIONS = definePool("sessions", {
  payload: z.object({ cookie: z.string(), account: z.string() }),
  tags: z.object({ site: z.string() }),
  // The session that rested longest goes first, so all of them wear evenly.
  strategy: "lru",
  maxUses: 200,
  // The pool asks for logins by itself: at most one for each session that it lacks, however many fetchers are hungry.
  refill: { below: 3, submit: HARVESTER, payload: ({ site }) => ({ site: String(site) }) },
});

export const FETCHER_OUT = defineStream(
  "fetcher",
  z.object({ account: z.string(), status: z.number().int(), ms: z.number(), waitedMs: z.number() }),
);

/** Once every few seconds, for whoever listens. */
export const STATS = defineTopic(
  "shop.stats",
  z.object({
    fetched: z.number().int(),
    refused: z.number().int(),
    perSecond: z.number(),
    p50Ms: z.number(),
  }),
);
