// Short (`npm test`): odd names in addresses and bodies, on both stores: refused, or exactly the object that bears the name.
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type Route, paramNames } from "../src/client/route.ts";
import { ROUTES } from "../src/client/routes.ts";
import { definePool } from "../src/contracts/pool.ts";
import { defineBatch } from "../src/index.ts";
import { PLACES } from "./support/places.ts";
import { publish, restOn, storeAt } from "./support/rest.ts";

const ODD = [
  "a/b",
  "/",
  "//",
  "a:b",
  ":id",
  ":name",
  "a#b",
  "#",
  "a+b",
  "+",
  "a b",
  " ",
  "%",
  "%2F",
  "%252F",
  "100%",
  "a%20b",
  "a?b=c",
  "?",
  "&a=b",
  "a;b",
  "a,b",
  "*",
  "..a",
  "...",
  "../x",
  "ü",
  "日本",
  "🙂",
  "e\u0301",
  "\u00e9",
  "İ",
  "a\\b",
  '"',
  "'",
  "<b>",
  "{}",
  "[0]",
  "__proto__",
  "constructor",
  "null",
  "claims",
  "retry",
  "a\nb",
  "a\tb",
  "\u202egnp",
  "x".repeat(128),
];
/** What no address can name, or no store could keep as it is. */
const IMPOSSIBLE = [".", "..", "", "\ud800", "a\udc00b", "a\u0000b", "x".repeat(129)];

const SESSIONS = definePool("sessions", { payload: z.object({ n: z.number() }) });
const SCRAPER = defineBatch("scraper", {
  tasks: { payload: z.object({ n: z.number() }) },
  uses: { put: [SESSIONS] },
  runOne: () => undefined,
});
const payload = { n: 1 };
const TASKS = "/automations/scraper/tasks";
const ITEMS = "/pools/sessions/items";
const at = encodeURIComponent;

describe.each(PLACES)("on $name", (place) => {
  const setUp = async () => {
    const { store } = await storeAt(place);
    await publish(store, [SCRAPER]);
    return { store, rest: restOn(store) };
  };

  it("gives each task by its own id, and changes no other", async () => {
    const { store, rest } = await setUp();
    const made = await rest.call("POST", TASKS, { tasks: ODD.map((id) => ({ id, payload })) });
    expect({ status: made.status, ids: made.json["ids"] }).toEqual({ status: 201, ids: ODD });
    const all = await rest.client.listTasks({ name: "scraper", query: { limit: 500 } });
    expect(all.items.map(({ id }) => id).toSorted()).toEqual(ODD.toSorted());
    for (const id of ODD) {
      expect((await rest.call("GET", `${TASKS}/${at(id)}`)).json).toMatchObject({ id, state: "waiting" });
      expect(await rest.client.taskResult({ name: "scraper", id })).toMatchObject({ id, done: false });
      expect(await rest.client.cancelTask({ name: "scraper", id })).toEqual({ id, outcome: "cancelled" });
      const counts = (await store.queues.stats({ queue: "scraper" }))?.counts;
      expect(counts).toMatchObject({ waiting: ODD.length - 1, cancelled: 1 });
      expect(await rest.client.retryTask({ name: "scraper", id })).toEqual({ id, outcome: "waiting" });
    }
    const after = await rest.client.listTasks({ name: "scraper", query: { limit: 500 } });
    expect(after.items).toHaveLength(ODD.length);
  });

  it("gives, claims and removes each item of a pool by its own id, and no other", async () => {
    const { store, rest } = await setUp();
    for (const id of ODD) {
      const { json } = await rest.call("POST", ITEMS, { id, payload });
      expect(json).toEqual({ id, validated: "structural" });
    }
    const listed = async () =>
      (await rest.client.listItems({ name: "sessions", query: { limit: 500 } })).items;
    expect((await listed()).map(({ id }) => id).toSorted()).toEqual(ODD.toSorted());
    const claimed = new Set<string>();
    for (const _ of ODD) {
      const { lease } = await rest.client.claimItem({ name: "sessions", body: { hold_seconds: 600 } });
      const { id = "", token = "" } = lease ?? {};
      claimed.add(id);
      await rest.client.extendClaim({ name: "sessions", token });
      expect((await listed()).filter(({ state }) => state === "held").map((item) => item.id)).toEqual([id]);
      await rest.client.releaseClaim({ name: "sessions", token });
    }
    expect(claimed).toEqual(new Set(ODD));
    for (const [done, id] of ODD.entries()) {
      expect((await rest.call("DELETE", `${ITEMS}/${at(id)}`)).status).toBe(204);
      expect((await store.pools.count({ pool: "sessions", where: {} })).free).toBe(ODD.length - done - 1);
      expect(await store.pools.get({ pool: "sessions", id })).toBeUndefined();
    }
  });

  it("refuses ids that could not be named or kept", async () => {
    const { store, rest } = await setUp();
    const taken: object[] = [];
    for (const id of IMPOSSIBLE) {
      for (const answer of [
        await rest.call("POST", TASKS, { id, payload }),
        await rest.call("POST", TASKS, { tasks: [{ id, payload }] }),
        await rest.call("POST", ITEMS, { id, payload }),
        await rest.call("POST", "/automations/scraper/schedules", { id, every_seconds: 60, payload }),
      ])
        if (answer.status !== 400 && answer.status !== 422) taken.push({ id, ...answer.json });
    }
    expect(taken).toEqual([]);
    expect((await store.queues.stats({ queue: "scraper" }))?.totals.submitted ?? 0).toBe(0);
    for (const id of [".", ".."])
      await expect(rest.client.getTask({ name: "scraper", id })).rejects.toMatchObject({
        code: "FLEET_OPTION_INVALID",
      });
  });

  it("makes schedules, topics, pools and automations of names alone", async () => {
    const { rest } = await setUp();
    const names = new Set(["constructor", "null", "claims", "retry", "x".repeat(128)]);
    for (const id of ODD) {
      const expected = {
        schedule: names.has(id) && id.length <= 64 ? 201 : 400,
        topic: names.has(id) ? 202 : 400,
      };
      const schedule = await rest.call("POST", "/automations/scraper/schedules", {
        id,
        every_seconds: 60,
        payload,
      });
      const topic = await rest.call("POST", `/events/${at(id)}`, { payload });
      expect({ id, schedule: schedule.status, topic: topic.status }).toEqual({
        id,
        schedule: id.length > 128 ? 422 : expected.schedule,
        topic: expected.topic,
      });
    }
    const { items } = await rest.client.listSchedules({ name: "scraper" });
    expect(items.map(({ id }) => id)).toEqual(["claims", "constructor", "null", "retry"]);
  });

  it("answers each route with an odd name for each of its parameters with 400 or 404 and a code", async () => {
    const { store, rest } = await setUp();
    await rest.client.submitTasks({ name: "scraper", body: { payload, id: "decoy" } });
    await rest.client.putItem({ name: "sessions", body: { payload, id: "decoy" } });
    const good: Record<string, string> = { name: "scraper", id: "nobody", token: "1.YQ", topic: "news" };
    const bodies: Record<string, object> = {
      rollbackConfig: { generation: 1 },
      setSlots: { count: 1 },
      submitTasks: { payload },
      putSchedule: { id: "s", every_seconds: 60, payload },
      putItem: { payload },
      publishEvent: { payload },
    };
    const names = new Set(["constructor", "null", "claims", "retry", "x".repeat(128)]);
    const wrong: object[] = [];
    let asked = 0;
    for (const [operation, route] of Object.entries(ROUTES as Record<string, Route>)) {
      const params = paramNames(route.path);
      for (const param of params) {
        for (const odd of [...ODD, "x".repeat(2000)]) {
          const isPool = route.path.startsWith("/pools");
          const values: Record<string, string> = {
            ...good,
            ...(isPool ? { name: "sessions" } : {}),
            [param]: odd,
          };
          const path = route.path.replace(/:([a-z_]+)/g, (_, name: string) => at(values[name] ?? ""));
          const { status, json } = await rest.call(route.method, path, bodies[operation]);
          asked += 1;
          const about = { operation, param, odd, status, code: json["code"] };
          const allowed = param === "topic" && names.has(odd) ? [202] : [400, 404, 409];
          const coded = status === 202 || String(json["code"]).startsWith("FLEET_");
          if (!allowed.includes(status) || !coded) wrong.push(about);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(asked).toBeGreaterThan(1000);
    expect((await rest.client.getTask({ name: "scraper", id: "decoy" })).state).toBe("waiting");
    expect((await store.pools.get({ pool: "sessions", id: "decoy" }))?.state).toBe("free");
  });
});
