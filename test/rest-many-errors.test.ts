// Short (`npm test`): a body with far too much that does not fit is its sender's fault, and answered in few words.
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { errorOf } from "../src/client/problem.ts";
import { definePool } from "../src/contracts/pool.ts";
import { defineQueue } from "../src/contracts/queue.ts";
import { defineTopic } from "../src/contracts/topic.ts";
import { defineBatch, openFleet } from "../src/index.ts";
import { PLACES } from "./support/places.ts";
import { publish, restOn, storeAt } from "./support/rest.ts";

/** More than a call takes arguments. */
const MANY = 150_000;
const NAMES = z.object({ names: z.array(z.string()) });
const MEGABYTES = 8 * 1024 * 1024;

const LISTS = defineQueue("lists", { payload: NAMES, maxPayloadBytes: MEGABYTES });
const SMALL = definePool("small", { payload: NAMES, maxPayloadBytes: 100 });
const NEWS = defineTopic("news", NAMES);
const AUTOMATION = defineBatch("lists", {
  tasks: LISTS,
  uses: { put: [SMALL], publish: [NEWS] },
  runOne: () => undefined,
});

const setUp = async () => {
  const { store, url, namespace } = await storeAt(PLACES[0] as (typeof PLACES)[0]);
  await publish(store, [AUTOMATION]);
  return { store, url, namespace, rest: restOn(store) };
};
/** Each of the names is a number. */
const wrong = (count: number) => ({ names: Array(count).fill(1) as number[] });

describe("a body with many errors", () => {
  it("of a payload is answered 422, with the first hundred and how many there are", async () => {
    const { rest } = await setUp();
    const { status, json } = await rest.call("POST", "/automations/lists/tasks", { payload: wrong(MANY) });
    expect({ status, code: json["code"], total: json["errors_total"] }).toEqual({
      status: 422,
      code: "FLEET_PAYLOAD_INVALID",
      total: MANY,
    });
    const errors = json["errors"] as { pointer: string }[];
    expect(errors.map(({ pointer }) => pointer)).toEqual(
      Array.from({ length: 100 }, (_, at) => `/payload/names/${at}`),
    );
    expect(json["detail"]).toContain(`and ${MANY - 3} more`);
    // Who reads it as a problem of before finds what was there before.
    expect(errorOf(status, json).issues).toHaveLength(100);
  });

  it("is looked at no further than to the task by which there are enough", async () => {
    const { rest } = await setUp();
    const tasks = (...counts: number[]) => ({ tasks: counts.map((count) => ({ payload: wrong(count) })) });
    const call = async (...counts: number[]) =>
      (await rest.call("POST", "/automations/lists/tasks", tasks(...counts))).json;
    const enough = await call(60, 60, 60);
    expect([(enough["errors"] as unknown[]).length, enough["errors_total"]]).toEqual([100, 120]);
    const fewer = await call(60, 0, 40);
    expect([(fewer["errors"] as unknown[]).length, fewer["errors_total"]]).toEqual([100, undefined]);
  });

  it("of the route's own fields is answered in the same way", async () => {
    const { rest } = await setUp();
    const many = Array.from({ length: 2000 }, (_, at) => [`tag${at}`, null] as const);
    for (const where of [Object.fromEntries(many), { site: Array(MANY).fill(null) as null[] }]) {
      const { status, json } = await rest.call("POST", "/pools/small/claim", { where });
      expect({ status, code: json["code"] }).toEqual({ status: 422, code: "FLEET_REQUEST_INVALID" });
      expect((json["errors"] as unknown[]).length).toBeLessThanOrEqual(100);
    }
    const { json } = await rest.call("POST", "/pools/small/claim", { where: Object.fromEntries(many) });
    expect(json["errors_total"]).toBe(many.length);
    const unknown = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`field${at}`, 1]));
    const twice = await rest.call("POST", "/pools/small/claim", unknown);
    expect([twice.status, (twice.json["errors"] as unknown[]).length, twice.json["errors_total"]]).toEqual([
      422, 100, 500,
    ]);
  });
});

describe("a payload that is too large is said to be so, before it is compared with its schema", () => {
  const tooLarge = { status: 413, json: { code: "FLEET_PAYLOAD_TOO_LARGE" } };

  it("of a pool's item", async () => {
    const { rest, url, namespace } = await setUp();
    expect(await rest.call("POST", "/pools/small/items", { payload: wrong(200) })).toMatchObject({
      ...tooLarge,
      json: { ...tooLarge.json, errors: [{ pointer: "/payload" }] },
    });
    const fleet = await openFleet({ store: url, namespace });
    onTestFinished(() => fleet.close());
    const put = fleet.pool(SMALL).put({ payload: wrong(200) as never });
    await expect(put).rejects.toMatchObject({ code: "FLEET_PAYLOAD_TOO_LARGE" });
  });

  it("of an event", async () => {
    const { rest } = await setUp();
    expect(await rest.call("POST", "/events/news", { payload: wrong(40_000) })).toMatchObject(tooLarge);
  });
});
