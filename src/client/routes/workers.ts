// Routes of workers, and of the fleet as a whole.
import { z } from "zod";
import { PARTITION_POLICIES } from "../../protocol/status.ts";
import { route } from "../route.ts";
import { labels, pageOf, paging, time } from "../shapes.ts";

const TAG = "Workers";

const worker = z
  .object({
    id: z.string(),
    state: z.string(),
    host: z.string(),
    pid: z.number(),
    version: z.string(),
    capacity: z.number(),
    slots: z.number(),
    automations: z.array(z.string()),
    labels,
    partition: z.enum(PARTITION_POLICIES).describe("what it does while it cannot reach the store"),
    partition_seconds: z.number().nullable().describe("of `exit`: after so long without the store it ends"),
    last_beat_seconds: z.number(),
  })
  .loose();

const steered = z.object({ worker: z.string(), changed: z.boolean() });

export const WORKER_ROUTES = {
  getFleet: route({
    method: "GET",
    path: "/fleet",
    tag: "Fleet",
    summary: "The fleet itself: its id, its leader, the store's time",
    status: 200,
    answer: z.object({
      fleet_id: z.string(),
      namespace: z.string(),
      version: z.string().describe("of this master"),
      store: z.string().describe("kind of the store"),
      leader: z.string().nullable(),
      now: time,
    }),
  }),
  joinFleet: route({
    method: "GET",
    path: "/join",
    tag: "Fleet",
    summary: "Where a worker of another host finds the store",
    description:
      "`store` is the address that the master was given for workers (it may hold a password); null: all goes through the master.",
    status: 200,
    answer: z.object({ store: z.string().nullable(), namespace: z.string() }),
  }),
  getTopology: route({
    method: "GET",
    path: "/topology",
    tag: "Fleet",
    summary:
      "What hands data to what: automations, streams, queues, pools, topics, and the edges between them",
    status: 200,
    answer: z
      .object({
        nodes: z.array(z.record(z.string(), z.unknown())),
        edges: z.array(z.record(z.string(), z.unknown())),
      })
      .loose(),
  }),
  listWorkers: route({
    method: "GET",
    path: "/workers",
    tag: TAG,
    summary: "All workers that are known",
    query: z.object(paging),
    status: 200,
    answer: pageOf(worker),
  }),
  drainWorker: route({
    method: "POST",
    path: "/workers/:id/drain",
    tag: TAG,
    summary: "Lets a worker end its slots and leave",
    body: z.strictObject({
      deadline_seconds: z
        .number()
        .min(0)
        .max(86_400)
        .optional()
        .describe(
          "then by force; 60 by default. Where the worker drains already, one that is given takes the place of that before, from now on",
        ),
    }),
    bodyOptional: true,
    status: 202,
    answer: steered,
  }),
  cordonWorker: route({
    method: "POST",
    path: "/workers/:id/cordon",
    tag: TAG,
    summary: "Gives a worker no further slots; what it runs stays",
    status: 200,
    answer: steered,
  }),
  uncordonWorker: route({
    method: "POST",
    path: "/workers/:id/uncordon",
    tag: TAG,
    summary: "Gives a worker slots again",
    status: 200,
    answer: steered,
  }),
  removeWorker: route({
    method: "DELETE",
    path: "/workers/:id",
    tag: TAG,
    summary: "Forgets a worker that is offline",
    status: 204,
    answer: null,
  }),
};
