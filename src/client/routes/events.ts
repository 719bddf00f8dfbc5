// Routes of the event bus.
import { z } from "zod";
import { route } from "../route.ts";
import { json, time } from "../shapes.ts";

const TAG = "Events";

export const EVENT_ROUTES = {
  publishEvent: route({
    method: "POST",
    path: "/events/:topic",
    tag: TAG,
    summary: "Publishes an event",
    body: z.strictObject({ payload: json }),
    status: 202,
    answer: z.object({ topic: z.string() }),
  }),
  tailEvents: route({
    method: "GET",
    path: "/events",
    tag: TAG,
    summary: "Follows topics, by name or pattern",
    query: z.object({
      topics: z.string().min(1).max(4096).default("*").describe("with commas between them, as in `a,b.*`"),
    }),
    status: 200,
    answer: z.object({
      topic: z.string(),
      payload: json,
      ts: time,
      source: z.string(),
      seq: z.number(),
      missed: z.number().describe("how many events were missed since the one before"),
    }),
    events: true,
  }),
};
