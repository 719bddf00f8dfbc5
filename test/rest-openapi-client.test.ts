// Short (`npm test`): the OpenAPI document of a running master is valid, and a client that is not ours does with it what ours does.
import { Validator } from "@seriousme/openapi-schema-validator";
// @ts-expect-error -- it brings no types
import SwaggerClient from "swagger-client";
import { describe, expect, it } from "vitest";
import { ROUTES } from "../src/client/routes.ts";
import { fleetInStore, masterOn } from "./support/rest-fleet.ts";
import { TOKEN } from "./support/rest.ts";

interface Answer {
  status: number;
  body: unknown;
}
type Call = (parameters?: object, how?: { requestBody?: object }) => Promise<Answer>;
interface Foreign {
  authorizations: { token: { value: string } };
  errors: unknown[];
  apis: Record<string, Record<string, Call>>;
}
interface Request {
  loadSpec?: boolean;
  headers: Record<string, string>;
}

async function foreignClient(url: string): Promise<Foreign> {
  return (await (SwaggerClient as (options: object) => Promise<unknown>)({
    url: `${url}/api/v1/openapi.json`,
    authorizations: { token: { value: TOKEN } },
    // The document, too, wants the token.
    requestInterceptor: (request: Request) => {
      if (request.loadSpec === true) request.headers["authorization"] = `Bearer ${TOKEN}`;
      return request;
    },
  })) as Foreign;
}

describe("the OpenAPI document of a running master", () => {
  it("is valid OpenAPI 3.1", async () => {
    const master = await masterOn(await fleetInStore());
    const response = await master.fetch("/openapi.json");
    expect(response.headers.get("content-type")).toBe("application/json");
    const document = (await response.json()) as Record<string, unknown>;
    expect(document).toMatchObject({ openapi: "3.1.0" });
    const { valid, errors } = await new Validator().validate(structuredClone(document));
    expect({ valid, errors }).toMatchObject({ valid: true });
    const broken = { ...document, paths: { "/x": { get: { responses: 3 } } } };
    expect((await new Validator().validate(broken)).valid).toBe(false);
  });

  it("drives a client that is not ours", { timeout: 60_000 }, async () => {
    const master = await masterOn(await fleetInStore());
    const client = await foreignClient(master.url);
    const { apis, errors } = client;
    expect(errors).toEqual([]);
    const operations = Object.values(apis).flatMap((tag) => Object.keys(tag));
    expect(operations).toEqual(expect.arrayContaining(Object.keys(ROUTES)));
    const call = async (tag: string, name: string, parameters: object, requestBody?: object) => {
      const operation = apis[tag]?.[name];
      if (operation === undefined) throw new Error(`no operation ${name}`);
      const { status, body } = await operation(parameters, requestBody === undefined ? {} : { requestBody });
      return { status, body };
    };

    expect(await call("Automations", "listAutomations", { limit: 1 })).toMatchObject({
      status: 200,
      body: { items: [{ name: "pinger", slots: 2, generation: 1 }], next_cursor: "pinger" },
    });
    expect(
      await call("Automations", "patchConfig", { name: "pinger", "If-Match": '"1"' }, { every: 2 }),
    ).toMatchObject({ status: 200, body: { generation: 2, config: { every: 2 } } });
    await expect(
      call("Automations", "patchConfig", { name: "pinger", "If-Match": '"1"' }, { every: 3 }),
    ).rejects.toMatchObject({ status: 409, response: { obj: { code: "FLEET_CONFLICT" } } });

    const submitted = {
      status: 201,
      body: { ids: [expect.stringMatching(/^ik-/) as string], validated: "structural" },
    };
    for (const outcome of ["submitted", "repeated"])
      expect(
        await call(
          "Tasks",
          "submitTasks",
          { name: "scraper", "Idempotency-Key": "k" },
          { payload: { url: "u" } },
        ),
      ).toMatchObject({ ...submitted, body: { ...submitted.body, tasks: [{ outcome }] } });

    expect(await call("Output", "popOutput", { name: "pinger" }, { n: 2 })).toMatchObject({
      status: 200,
      body: [{ payload: { n: 1 } }, { payload: { n: 2 } }],
    });

    expect(
      await call(
        "Pools",
        "putItem",
        { name: "sessions" },
        { payload: { cookie: "c" }, tags: { site: "a" }, id: "s1" },
      ),
    ).toMatchObject({ status: 201, body: { id: "s1" } });
    const { body } = await call("Pools", "claimItem", { name: "sessions" }, { where: { site: "a" } });
    const { lease } = body as { lease: { id: string; token: string } };
    expect(lease.id).toBe("s1");
    const release = () => call("Pools", "releaseClaim", { name: "sessions", token: lease.token });
    expect((await release()).status).toBe(204);
    await expect(release()).rejects.toMatchObject({
      status: 409,
      response: { obj: { code: "FLEET_LEASE_LOST" } },
    });

    client.authorizations.token.value = "another-token-altogether";
    await expect(call("Workers", "listWorkers", {})).rejects.toMatchObject({ status: 401 });
  });
});
