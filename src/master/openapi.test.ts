import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { ROUTES } from "../client/routes.ts";
import { openApiDocument } from "./openapi.ts";

interface Operation {
  operationId: string;
  parameters: { name: string; in: string; schema: { type: string; default?: unknown }; required: boolean }[];
  requestBody?: { required: boolean; content: { "application/json": { schema: { required?: string[] } } } };
}
type Paths = Record<string, Record<string, Operation>>;

const document = openApiDocument();
const paths = document["paths"] as Paths;

describe("the OpenAPI document", () => {
  it("is valid OpenAPI 3.1", async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(document));
    expect(errors ?? []).toEqual([]);
    expect(valid).toBe(true);
    const broken = { ...structuredClone(document), paths: { "/x": { get: { responses: 3 } } } };
    expect((await new Validator().validate(broken)).valid).toBe(false);
  });

  it("has every route of the table, under its own name", () => {
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(
        ([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`,
      ),
    );
    const table = Object.entries(ROUTES).map(
      ([name, { method, path }]) => `${name} ${method} /api/v1${path.replace(/:(\w+)/g, "{$1}")}`,
    );
    const health = ["healthz GET /healthz", "readyz GET /readyz", "metrics GET /metrics"];
    expect(operations.toSorted()).toEqual([...table, ...health].toSorted());
  });

  it("says what a query's values are, not that they are texts", () => {
    const peek = paths["/api/v1/automations/{name}/output/peek"]?.["get"];
    expect(peek?.parameters).toContainEqual(
      expect.objectContaining({
        name: "n",
        in: "query",
        required: false,
        schema: expect.objectContaining({ type: "integer", default: 1 }),
      }),
    );
  });

  it("knows what a body must hold, and where it may be left out", () => {
    const body = (path: string, method = "post") => paths[`/api/v1${path}`]?.[method]?.requestBody;
    expect(body("/automations/{name}/slots", "put")?.content["application/json"].schema.required).toEqual([
      "count",
    ]);
    expect(body("/automations/{name}/slots", "put")?.required).toBe(true);
    expect(body("/automations/{name}/output/pop")?.required).toBe(false);
  });
});
