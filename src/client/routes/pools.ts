// Routes of pools: scarce items that many borrow.
import { z } from "zod";
import { route } from "../route.ts";
import { json, pageOf, paging, time } from "../shapes.ts";

const TAG = "Pools";
const YEAR = 365 * 86_400;

export const itemShape = z.object({
  id: z.string(),
  state: z.enum(["free", "held", "cooling", "retired"]),
  payload: json,
  tags: json,
  uses: z.number(),
  score: z.number(),
  put_at: time,
  expires_at: time.nullable(),
  holder: z.object({ by: z.string(), since: time, until: time }).nullable(),
  cool_until: time.nullable(),
  retired: z.object({ reason: z.string(), note: z.string(), at: time }).nullable(),
});

const lease = z.object({
  id: z.string().describe("of the item"),
  token: z.string().describe("names this claim in the routes below"),
  payload: json,
  tags: json,
  uses: z.number(),
  until: time,
});

const tagValue = z.union([z.string(), z.number(), z.boolean()]);

export const POOL_ROUTES = {
  listPools: route({
    method: "GET",
    path: "/pools",
    tag: TAG,
    summary: "All pools, with how many items are free, held, cooling and retired",
    query: z.object(paging),
    status: 200,
    answer: pageOf(
      z
        .object({
          name: z.string(),
          free: z.number(),
          held: z.number(),
          cooling: z.number(),
          retired: z.number(),
          waiting: z.number().describe("claims that wait"),
        })
        .loose(),
    ),
  }),
  listItems: route({
    method: "GET",
    path: "/pools/:name/items",
    tag: TAG,
    summary: "Items of a pool",
    query: z.object({ state: z.enum(["free", "held", "cooling", "retired"]).optional(), ...paging }),
    status: 200,
    answer: pageOf(itemShape),
  }),
  putItem: route({
    method: "POST",
    path: "/pools/:name/items",
    tag: TAG,
    summary: "Puts an item into the pool",
    description:
      "Payload and tags are checked against the published JSON Schemas, then by a live process of an automation that declares the pool, which knows what a JSON Schema cannot say. Where none is alive, `validated` is `structural`.",
    body: z.strictObject({
      payload: json,
      tags: z.record(z.string(), json).optional(),
      ttl_seconds: z
        .number()
        .min(0)
        .max(10 * YEAR)
        .optional(),
      id: z.string().min(1).max(128).optional().describe("the same id put again changes nothing"),
    }),
    status: 201,
    answer: z.object({ id: z.string(), validated: z.enum(["full", "structural"]) }),
  }),
  removeItem: route({
    method: "DELETE",
    path: "/pools/:name/items/:id",
    tag: TAG,
    summary: "Takes an item out of the pool; who holds it loses it",
    status: 204,
    answer: null,
  }),
  claimItem: route({
    method: "POST",
    path: "/pools/:name/claim",
    tag: TAG,
    summary: "Claims an item: an exclusive lease, or null where none is free in time",
    body: z.strictObject({
      where: z
        .record(z.string(), z.union([tagValue, z.array(tagValue).min(1)]))
        .default({})
        .describe("tag → value, or a list of values of which one has to match"),
      hold_seconds: z.number().gt(0).max(86_400).default(60),
      wait_seconds: z.number().min(0).max(60).default(0),
    }),
    bodyOptional: true,
    status: 200,
    answer: z.object({ lease: lease.nullable() }),
  }),
  extendClaim: route({
    method: "POST",
    path: "/pools/:name/claims/:token/extend",
    tag: TAG,
    summary: "Holds a claim for longer, counted from now",
    body: z.strictObject({ hold_seconds: z.number().gt(0).max(86_400).default(60) }),
    bodyOptional: true,
    status: 200,
    answer: z.object({ until: time }),
  }),
  releaseClaim: route({
    method: "POST",
    path: "/pools/:name/claims/:token/release",
    tag: TAG,
    summary: "Gives a claimed item back",
    status: 204,
    answer: null,
  }),
};
