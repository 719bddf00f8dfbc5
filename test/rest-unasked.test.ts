// Short (`npm test`): what a route does not take in its address or its headers is refused, never ignored.
import { describe, expect, it } from "vitest";
import type { Route } from "../src/client/route.ts";
import { ROUTES } from "../src/client/routes.ts";
import { fleetInStore } from "./support/rest-fleet.ts";
import { restOn } from "./support/rest.ts";

const TABLE = Object.entries(ROUTES as Record<string, Route>);

/** An address of the route; nothing of that name need be there. */
const pathOf = ({ path }: Route) =>
  path.replace(/:(\w+)/g, (_, name: string) => (name === "topic" ? "t" : "pinger"));

const bodyOf = ({ method, body, bodyOptional }: Route) =>
  method === "GET" || body === undefined || bodyOptional === true ? undefined : {};

describe("a query", () => {
  it.each(TABLE)("%s refuses a parameter that it does not know, by its name", async (_, route) => {
    const rest = restOn((await fleetInStore()).store);
    const { status, json } = await rest.call(route.method, `${pathOf(route)}?no_such=1`, bodyOf(route));
    expect({ status, json }).toMatchObject({
      status: 400,
      json: { code: "FLEET_REQUEST_INVALID", errors: [{ pointer: "/no_such", message: "is not known" }] },
    });
  });

  it("with a field of the body recycles nothing, and says where it belongs", async () => {
    const { store } = await fleetInStore();
    const rest = restOn(store);
    const desired = async () => (await store.registry.view()).desired;
    const before = await desired();
    const { status, json } = await rest.call("POST", "/automations/pinger/recycle?slot_id=1");
    expect({ status, json }).toMatchObject({
      status: 400,
      json: {
        detail: "this route takes no query parameters: /slot_id: is a field of the body, not of the query",
        errors: [{ pointer: "/slot_id" }],
      },
    });
    expect(await desired()).toEqual(before);
    expect((await rest.call("POST", "/automations/pinger/recycle", { slot_id: 1 })).status).toBe(200);
    expect(await desired()).not.toEqual(before);
  });
});

describe("a header", () => {
  for (const [name, key, value] of [
    ["If-Match", "ifMatch", '"1"'],
    ["Idempotency-Key", "idempotencyKey", "k-1"],
  ] as const)
    it.each(TABLE.filter(([, { headers }]) => headers?.includes(key) !== true))(
      `${name}: %s refuses it`,
      async (_, route) => {
        const rest = restOn((await fleetInStore()).store);
        const headers = { [name]: value };
        const { status, json } = await rest.call(route.method, pathOf(route), bodyOf(route), { headers });
        expect({ status, code: json["code"] }).toEqual({ status: 400, code: "FLEET_REQUEST_INVALID" });
        expect(json["detail"]).toContain(`this route takes no ${name}: only `);
        expect(json["detail"]).toContain("leave it out");
      },
    );

  it("that makes a repeat harmless elsewhere is refused with what does so here", async () => {
    const { store } = await fleetInStore();
    const rest = restOn(store);
    const put = { payload: { cookie: "c" }, tags: { site: "a" } };
    const headers = { "idempotency-key": "k" };
    const { status, json } = await rest.call("POST", "/pools/sessions/items", put, { headers });
    expect({ status, detail: json["detail"] }).toEqual({
      status: 400,
      detail: expect.stringContaining("give an `id` of your own in the body") as string,
    });
    expect(await store.pools.stats({ pool: "sessions" })).toBeUndefined();
  });

  it("of browsers and proxies changes nothing", async () => {
    const rest = restOn((await fleetInStore()).store);
    const headers = {
      "if-none-match": '"1"',
      "if-modified-since": "Mon, 01 Jan 2024 00:00:00 GMT",
      "if-range": '"1"',
      range: "bytes=0-10",
      "cache-control": "no-cache",
      "x-forwarded-for": "10.0.0.1",
      via: "1.1 proxy",
    };
    const { status, json } = await rest.call("GET", "/automations", undefined, { headers });
    expect({ status, count: (json["items"] as unknown[]).length }).toEqual({ status: 200, count: 2 });
  });
});
