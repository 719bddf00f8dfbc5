// What a route is: one table of these yields the master's handlers, the OpenAPI document, the typed client and the command line's calls.
import type { z } from "zod";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Headers that mean something to a route, by the names under which the client takes them. */
export const ROUTE_HEADERS = {
  ifMatch: {
    name: "If-Match",
    about:
      'The generation that the change was made for, as in `"7"`; with another one at present the answer is 409.',
  },
  idempotencyKey: {
    name: "Idempotency-Key",
    about:
      "1 to 128 characters: a repeat with the same key and body is answered as the first was, and changes nothing; another body is refused with 409.",
  },
} as const;
export type RouteHeader = keyof typeof ROUTE_HEADERS;

export interface Route {
  method: Method;
  /** Below the API's root, with `:name` for parameters. */
  path: string;
  /** Group in the reference. */
  tag: string;
  summary: string;
  description?: string;
  /** Values are texts on the way; what coerces them stands in the schema. */
  query?: z.ZodObject;
  /** Always an object. */
  body?: z.ZodType;
  /** A request without a body is one with `{}`. */
  bodyOptional?: true;
  /** Largest body in bytes; default 1 MiB. */
  maxBodyBytes?: number;
  headers?: readonly RouteHeader[];
  status: 200 | 201 | 202 | 204;
  /** Null: no body. With `events` the shape of each event's data. */
  answer: z.ZodType | null;
  /** Server-sent events, until one side ends them. */
  events?: true;
}

/** Checks a route's shape and keeps its literal types. */
export function route<const R extends Route>(spec: R): R {
  return spec;
}

type ParamNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** Parameters of a path, as text. */
export type Params<R extends Route> = { [Name in ParamNames<R["path"]>]: string };

type Field<Key extends string, S> = S extends z.ZodType
  ? // oxlint-disable-next-line typescript/no-generated-empty-object-type -- "nothing has to be given" is what is asked.
    Record<never, never> extends z.input<S>
    ? { [K in Key]?: z.input<S> }
    : { [K in Key]: z.input<S> }
  : unknown;

type BodyField<R extends Route> = R["body"] extends z.ZodType
  ? R["bodyOptional"] extends true
    ? { body?: z.input<R["body"]> }
    : { body: z.input<R["body"]> }
  : unknown;

type HeaderFields<R extends Route> = R["headers"] extends readonly (infer H extends RouteHeader)[]
  ? { [K in H]?: string }
  : unknown;

/** What a caller gives. */
export type RouteInput<R extends Route> = Params<R> &
  Field<"query", R["query"]> &
  BodyField<R> &
  HeaderFields<R>;

/** What a caller gets; of a route of events each one. */
export type RouteAnswer<R extends Route> = R["answer"] extends z.ZodType ? z.output<R["answer"]> : undefined;

/** Names of the parameters in a path, in order. */
export function paramNames(path: string): string[] {
  return [...path.matchAll(/:([a-z_]+)/g)].map(([, name]) => name as string);
}
