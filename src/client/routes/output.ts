// Routes of an automation's output stream, for clients that are no automations.
import { z } from "zod";
import { route } from "../route.ts";
import { count, envelope } from "../shapes.ts";

const TAG = "Output";
/** Most entries of one call. */
const MOST = 1000;

export const OUTPUT_ROUTES = {
  popOutput: route({
    method: "POST",
    path: "/automations/:name/output/pop",
    tag: TAG,
    summary: "Takes the oldest entries out of the stream",
    description:
      "Destructive, at most once: what is in the answer is in the stream no more, whether or not the answer arrives.",
    body: z.strictObject({ n: z.int().min(1).max(MOST).default(1) }),
    bodyOptional: true,
    status: 200,
    answer: z.array(envelope),
  }),
  peekOutput: route({
    method: "GET",
    path: "/automations/:name/output/peek",
    tag: TAG,
    summary: "Shows the oldest entries; they stay",
    query: z.object({ n: count(1, MOST, 1) }),
    status: 200,
    answer: z.array(envelope),
  }),
  outputLength: route({
    method: "GET",
    path: "/automations/:name/output/length",
    tag: TAG,
    summary: "How many entries the stream holds",
    status: 200,
    answer: z.object({ length: z.number() }),
  }),
  tailOutput: route({
    method: "GET",
    path: "/automations/:name/output/tail",
    tag: TAG,
    summary: "Follows the stream as it grows; entries stay",
    description:
      'Where this reader is too slow, an event named `gap` stands in place of what was left out, with `{"missed": n}`.',
    status: 200,
    answer: envelope,
    events: true,
  }),
};
