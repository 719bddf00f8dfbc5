import type { EVENT_ROUTES } from "../../client/routes/events.ts";
import { checkName } from "../../contracts/name.ts";
import { followEvents } from "../../control/follow-events.ts";
import { checkEvent } from "../../control/known-topic.ts";
import type { Json } from "../../client/shapes.ts";
import { eventBus } from "../../primitives/events.ts";
import type { ReceivedEvent } from "../../primitives/subscription.ts";
import { RequestProblem } from "../http/request-problem.ts";
import type { Handlers } from "../handler.ts";
import { inBody } from "../payloads.ts";

/** Events that wait for a slow reader at most, of all its patterns; what is dropped is counted in the next one's `missed`. */
const MAX_WAITING = 1000;
/** The same in bytes. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const MAX_PATTERNS = 32;

export const EVENT_HANDLERS: Handlers<keyof typeof EVENT_ROUTES> = {
  publishEvent: async ({ params: { topic }, body: { payload }, by }, { store }) => {
    checkName("topic", topic);
    if (topic.startsWith("fleet."))
      throw new RequestProblem(
        403,
        "FLEET_NAME_INVALID",
        `topic "${topic}" is reserved: topics under "fleet." are published by the framework itself; choose another prefix`,
      );
    try {
      await checkEvent(store, topic, payload);
      await eventBus({ store: store.events, source: `api:${by.name}` }).publish(topic, payload);
    } catch (error) {
      throw inBody(error, "/payload");
    }
    return { topic };
  },

  tailEvents: ({ query: { topics }, signal }, { store }) => {
    const patterns = topics.split(",").map((pattern) => pattern.trim());
    if (patterns.length > MAX_PATTERNS)
      throw new RequestProblem(
        400,
        "FLEET_REQUEST_INVALID",
        `topics has ${patterns.length} patterns; at most ${MAX_PATTERNS} can be followed at once`,
      );
    const shares = new Set(patterns).size;
    const buffer = Math.floor(MAX_WAITING / shares);
    const bufferBytes = Math.floor(MAX_WAITING_BYTES / shares);
    const events = followEvents(store.events, { patterns, buffer, bufferBytes, signal });
    return events as AsyncIterable<ReceivedEvent<Json>>;
  },
};
