// Shapes that several routes share. JSON is snake_case; payloads of users are passed through untouched.
import { z } from "zod";

/** Unix milliseconds. */
export const time = z.number().describe("Unix milliseconds, by the store's clock");

/** What JSON can say. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** Anything that JSON can say; it has been parsed from JSON, so it need only be there. */
export const json = z.custom<Json>((value) => value !== undefined, "is missing");

/** An object whose fields are somebody else's affair. */
export const jsonObject = z.record(z.string(), json);

export const labels = z.record(z.string(), z.string());

/** Text of a query that stands for a whole number. */
export function count(min: number, max: number, otherwise: number) {
  return z.coerce.number().int().min(min).max(max).default(otherwise);
}

/** Seconds in a query. */
export function waitSeconds(max: number) {
  return z.coerce
    .number()
    .min(0)
    .max(max)
    .default(0)
    .describe(`how long to wait, in seconds, at most ${max}`);
}

/** Most entries of one page of a list. */
export const MAX_PAGE = 500;

export const paging = {
  limit: count(1, MAX_PAGE, 100),
  cursor: z.string().max(4096).optional().describe("`next_cursor` of the page before"),
};

/** A page of a list: `next_cursor` is null on the last. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), next_cursor: z.string().nullable() });
}

export const envelope = z
  .object({
    id: z.string(),
    slot_id: z.number().nullable().describe("null when it was pushed from outside an automation"),
    ts: time,
    payload: json,
  })
  .loose()
  .describe(
    "An entry of a stream, as it stands in the store; what another program has written there that is no JSON comes as a text",
  );
