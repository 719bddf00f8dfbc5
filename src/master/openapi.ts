// The OpenAPI 3.1 document, from the one table of routes.
import { z } from "zod";
import { paramNames, type Route, ROUTE_HEADERS, type RouteHeader } from "../client/route.ts";
import { API_ROOT, ROUTES } from "../client/routes.ts";
import { ERROR_CODES } from "../errors.ts";
import { VERSION } from "../protocol/version.ts";
import { MOST_ERRORS } from "./http/request-problem.ts";

type Json = Record<string, unknown>;

const PROBLEM: Json = {
  type: "object",
  description: "Problem details (RFC 9457) with Fleet's stable code",
  required: ["type", "title", "status", "code", "detail"],
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    code: { type: "string", enum: Object.keys(ERROR_CODES) },
    detail: { type: "string" },
    retryable: { type: "boolean" },
    outcome: { type: "string", const: "unknown" },
    errors_total: {
      type: "integer",
      description: "How many errors were found, where that is more than are listed",
    },
    errors: {
      type: "array",
      maxItems: MOST_ERRORS,
      items: {
        type: "object",
        required: ["pointer", "message"],
        properties: { pointer: { type: "string" }, message: { type: "string" } },
      },
    },
  },
};

const HEALTH: Json = {
  "/healthz": {
    get: {
      operationId: "healthz",
      tags: ["Health"],
      summary: "Whether the master's process answers",
      security: [],
      responses: {
        200: { description: "It does", content: { "text/plain": { schema: { type: "string" } } } },
      },
    },
  },
  "/readyz": {
    get: {
      operationId: "readyz",
      tags: ["Health"],
      summary: "Whether the master reaches its store",
      responses: {
        200: { description: "It does", content: { "text/plain": { schema: { type: "string" } } } },
        default: problem(),
      },
    },
  },
  "/metrics": {
    get: {
      operationId: "metrics",
      tags: ["Health"],
      summary: "Metrics in the text format of Prometheus",
      responses: {
        200: { description: "Metrics", content: { "text/plain": { schema: { type: "string" } } } },
        default: problem(),
      },
    },
  },
};

/** Health and metrics are at the root, all else below `/api/v1`. */
export function openApiDocument(): Json {
  const paths: Record<string, Json> = structuredClone(HEALTH) as Record<string, Json>;
  for (const [name, route] of Object.entries(ROUTES as Record<string, Route>)) {
    const path = API_ROOT + route.path.replace(/:([a-z_]+)/g, "{$1}");
    (paths[path] ??= {})[route.method.toLowerCase()] = operation(name, route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Fleet",
      version: VERSION,
      description: "What runs, what is desired, and the data in between.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: { Problem: PROBLEM },
    },
  };
}

function operation(name: string, route: Route): Json {
  return {
    operationId: name,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    parameters: [
      ...paramNames(route.path).map((param) => ({
        name: param,
        in: "path",
        required: true,
        schema: { type: "string" },
      })),
      ...queryParameters(route),
      ...(route.headers ?? []).map(header),
    ],
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: route.bodyOptional !== true,
            content: { "application/json": { schema: schemaOf(route.body, "input") } },
          },
        }),
    responses: { [route.status]: answer(route), default: problem() },
  };
}

function queryParameters({ query }: Route): Json[] {
  if (query === undefined) return [];
  const { properties = {}, required = [] } = schemaOf(query, "input") as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  const shapes = schemaOf(query, "output")["properties"] as Record<string, Json>;
  return Object.keys(properties).map((name) => {
    const { description, ...schema } = shapes[name] ?? {};
    return {
      name,
      in: "query",
      required: required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema,
    };
  });
}

function header(name: RouteHeader): Json {
  const { name: as, about } = ROUTE_HEADERS[name];
  return { name: as, in: "header", required: false, description: about, schema: { type: "string" } };
}

function answer(route: Route): Json {
  if (route.answer === null) return { description: "Done" };
  const schema = schemaOf(route.answer, "output");
  return route.events
    ? {
        description: "Server-sent events; the data of each is as the schema says",
        content: { "text/event-stream": { schema } },
      }
    : { description: "Done", content: { "application/json": { schema } } };
}

function problem(): Json {
  return {
    description: "What went wrong",
    content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
  };
}

function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any", reused: "inline" });
  return rest;
}
