// Short (`npm test`): the table of routes, the handlers, the OpenAPI document, the typed client and the command line agree. Needs dist/.
import { describe, expect, it } from "vitest";
import type { z } from "zod";
import type { Client } from "../src/client/client.ts";
import type { Route } from "../src/client/route.ts";
import { API_ROOT, ROUTES, type RouteName } from "../src/client/routes.ts";
import { eventBus } from "../src/primitives/events.ts";
import { HANDLERS } from "../src/master/handlers.ts";
import { openApiDocument } from "../src/master/openapi.ts";
import type { Store } from "../src/store/store.ts";
import { openFleet } from "../src/index.ts";
import { runFleet } from "./support/cli.ts";
import { fleetInStore, PINGS } from "./support/rest-fleet.ts";
import { restOn } from "./support/rest.ts";

const TABLE = ROUTES as Record<string, Route>;

/** The first thing that comes, once `cause` has been set off. */
async function firstOf<T>(events: AsyncGenerator<T>, cause: () => Promise<unknown>): Promise<T> {
  const first = events.next();
  // It is not told when it listens, so it is told again.
  const again = setInterval(() => void cause(), 50);
  try {
    return (await first).value as T;
  } finally {
    clearInterval(again);
    await events.return(undefined);
  }
}

interface Made {
  store: Store;
  worker: string;
  push: () => Promise<unknown>;
}

const payload = { url: "u" };
const pinger = { name: "pinger" };
const scraper = { name: "scraper" };
const sessions = { name: "sessions" };
const hourly = { name: "scraper", id: "hourly" };

/** One call of each route with valid input, in an order in which each finds what it needs. */
const CALLS: { [Name in RouteName]: (client: Client, made: Made) => Promise<unknown> } = {
  getFleet: (client) => client.getFleet(),
  joinFleet: (client) => client.joinFleet(),
  getTopology: (client) => client.getTopology(),
  listAutomations: (client) => client.listAutomations({ query: { limit: 1 } }),
  getAutomation: (client) => client.getAutomation(pinger),
  setSlots: (client) => client.setSlots({ ...pinger, body: { count: 4 } }),
  pauseAutomation: (client) => client.pauseAutomation(pinger),
  resumeAutomation: (client) => client.resumeAutomation(pinger),
  recycleAutomation: (client) => client.recycleAutomation(pinger),
  patchConfig: (client) => client.patchConfig({ ...pinger, query: { canary: 0.5 }, body: { every: 2 } }),
  promoteCanary: (client) => client.promoteCanary(pinger),
  stopCanary: async (client) => {
    await client.patchConfig({ ...pinger, query: { canary: 0.5 }, body: { every: 3 } });
    return client.stopCanary(pinger);
  },
  configHistory: (client) => client.configHistory({ ...pinger, query: { limit: 2 } }),
  rollbackConfig: (client) => client.rollbackConfig({ ...pinger, body: { generation: 1 } }),
  outputLength: (client) => client.outputLength(pinger),
  peekOutput: (client) => client.peekOutput({ ...pinger, query: { n: 2 } }),
  popOutput: (client) => client.popOutput({ ...pinger, body: { n: 1 } }),
  tailOutput: (client, { push }) => firstOf(client.tailOutput(pinger), push),
  submitTasks: (client) =>
    client.submitTasks({ ...scraper, body: { tasks: ["a", "b"].map((id) => ({ id, payload })) } }),
  listTasks: (client) => client.listTasks({ ...scraper, query: { limit: 1 } }),
  getTask: (client) => client.getTask({ ...scraper, id: "a" }),
  taskResult: (client) => client.taskResult({ ...scraper, id: "a" }),
  cancelTask: (client) => client.cancelTask({ ...scraper, id: "a" }),
  retryTask: (client) => client.retryTask({ ...scraper, id: "a" }),
  putSchedule: (client) =>
    client.putSchedule({ ...scraper, body: { id: "hourly", cron: "0 * * * *", payload } }),
  listSchedules: (client) => client.listSchedules(scraper),
  pauseSchedule: (client) => client.pauseSchedule(hourly),
  resumeSchedule: (client) => client.resumeSchedule(hourly),
  runSchedule: (client) => client.runSchedule(hourly),
  removeSchedule: (client) => client.removeSchedule(hourly),
  putItem: (client) =>
    client.putItem({ ...sessions, body: { id: "s1", payload: { cookie: "c" }, tags: { site: "a" } } }),
  listPools: (client) => client.listPools(),
  listItems: (client) => client.listItems(sessions),
  claimItem: (client) => client.claimItem({ ...sessions, body: { where: { site: "a" } } }),
  releaseClaim: async (client) => {
    const { items } = await client.listItems({ ...sessions, query: { state: "held" } });
    expect(items).toHaveLength(1);
    // Whoever has claimed it has its token; here somebody else claims a second one.
    await client.putItem({ ...sessions, body: { id: "s2", payload: { cookie: "c" }, tags: { site: "b" } } });
    const { lease } = await client.claimItem({ ...sessions, body: { where: { site: "b" } } });
    return client.releaseClaim({ ...sessions, token: lease?.token ?? "" });
  },
  extendClaim: async (client) => {
    const { lease } = await client.claimItem({ ...sessions, body: { where: { site: ["b"] } } });
    return client.extendClaim({ ...sessions, token: lease?.token ?? "", body: { hold_seconds: 5 } });
  },
  removeItem: (client) => client.removeItem({ ...sessions, id: "s1" }),
  publishEvent: (client) => client.publishEvent({ topic: "some.thing", body: { payload: { n: 1 } } }),
  tailEvents: (client, { store }) =>
    firstOf(client.tailEvents({ query: { topics: "a,b.*" } }), () =>
      eventBus({ store: store.events, source: "test" }).publish("b.x", 1),
    ),
  listWorkers: (client) => client.listWorkers(),
  cordonWorker: (client, { worker }) => client.cordonWorker({ id: worker }),
  uncordonWorker: (client, { worker }) => client.uncordonWorker({ id: worker }),
  drainWorker: (client, { worker }) => client.drainWorker({ id: worker, body: { deadline_seconds: 5 } }),
  removeWorker: async (client, { store, worker }) => {
    const known = (await store.registry.view()).workers.find(({ id }) => id === worker);
    const gone = { ...known!, id: "gone", incarnation: "gone" };
    await store.registry.register({ worker: gone, manifests: [], ttlMs: 60_000 });
    await store.registry.deregister({ workerId: "gone", incarnation: "gone" });
    return client.removeWorker({ id: "gone" });
  },
};

describe("the table of routes", () => {
  it("has a handler for each route, and no other", () => {
    expect(Object.keys(HANDLERS).toSorted()).toEqual(Object.keys(ROUTES).toSorted());
  });

  it("is what the OpenAPI document says, with what each takes and gives", () => {
    const paths = openApiDocument()["paths"] as Record<string, Record<string, Operation>>;
    for (const [name, route] of Object.entries(TABLE)) {
      const operation = paths[API_ROOT + route.path.replace(/:(\w+)/g, "{$1}")]?.[route.method.toLowerCase()];
      expect({
        name: operation?.operationId,
        body: operation?.requestBody !== undefined,
        query: operation?.parameters.filter((one) => one.in === "query").map((one) => one.name),
        statuses: Object.keys(operation?.responses ?? {}),
      }).toEqual({
        name,
        body: route.body !== undefined,
        query: Object.keys(route.query?.shape ?? {}),
        statuses: [String(route.status), "default"],
      });
    }
  });

  it("is what a master answers: every route called by the client, each answer as its schema says, and no more", async () => {
    const { store, url, namespace } = await fleetInStore();
    const { client } = restOn(store);
    const fleet = await openFleet({ store: url, namespace });
    const [worker] = (await store.registry.view()).workers;
    const made = { store, worker: worker?.id ?? "", push: () => fleet.stream(PINGS).push({ n: 9 }) };
    for (const [name, call] of Object.entries(CALLS)) {
      const answer = await call(client, made).catch((error: unknown) => {
        throw new Error(`${name} failed`, { cause: error });
      });
      const schema = TABLE[name]?.answer as z.ZodType | null;
      // What a schema does not name is left out of what it gives: so nothing undocumented is answered.
      expect({ name, answer }).toEqual({ name, answer: schema === null ? undefined : schema.parse(answer) });
    }
    await fleet.close();
  });
});

interface Operation {
  operationId: string;
  parameters: { name: string; in: string }[];
  requestBody?: unknown;
  responses: Record<string, unknown>;
}

describe("the command line", () => {
  it("shows what REST shows", { timeout: 60_000 }, async () => {
    const { store, url, namespace } = await fleetInStore();
    const { client } = restOn(store);
    await client.submitTasks({ ...scraper, body: { tasks: ["a", "b"].map((id) => ({ id, payload })) } });
    for (const id of ["s1", "s2"])
      await client.putItem({ ...sessions, body: { id, payload: { cookie: "c" }, tags: { site: "a" } } });
    await client.claimItem({ ...sessions, body: { hold_seconds: 600 } });
    await client.patchConfig({ ...pinger, body: { every: 5 }, query: { note: "slower" } });
    await client.patchConfig({ ...pinger, body: { every: 6 }, query: { canary: 0.5 } });

    const cwd = process.cwd();
    const fleet = async <T>(...args: string[]) => {
      const { code, stdout, stderr } = await runFleet(
        [...args, "--json", "--store", url, "--namespace", namespace],
        { cwd },
      );
      expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: "" });
      return JSON.parse(stdout) as T;
    };
    const [status, graph, history, length, peek, tasks, task, pools, items] = await Promise.all([
      fleet<{ workers: object[]; automations: { name: string }[]; leader: string | null }>("status"),
      fleet<{ nodes: unknown[]; edges: unknown[] }>("graph", "--format", "json"),
      fleet("config", "history", "pinger"),
      fleet("stream", "length", "pinger"),
      fleet("stream", "peek", "pinger", "-n", "2"),
      fleet("task", "ls", "scraper", "--state", "waiting"),
      fleet("task", "show", "scraper", "a"),
      fleet<{ name: string; waiting: unknown[] }[]>("pool", "ls"),
      fleet("pool", "items", "sessions"),
    ]);

    // Ages pass between the two looks.
    const timeless = (value: unknown): unknown =>
      JSON.parse(
        JSON.stringify(value, (key, inner: unknown) => (/_seconds$|^now$/.test(key) ? "…" : inner)),
      ) as unknown;
    expect(timeless(status.workers)).toEqual(timeless((await client.listWorkers()).items));
    expect(status.leader).toBe((await client.getFleet()).leader);
    const automations = (await client.listAutomations()).items;
    expect(automations).toHaveLength(2);
    for (const [at, { kind, ...shared }] of automations.entries()) {
      expect(kind).toBe(shared.name === "pinger" ? "continuous" : "batch");
      expect(status.automations[at]).toMatchObject(shared);
      const { slot_list: slots } = await client.getAutomation({ name: shared.name });
      expect(timeless(status.automations[at])).toMatchObject({ slot_list: timeless(slots) as object[] });
    }
    expect(timeless(graph)).toEqual(timeless(await client.getTopology()));
    expect(graph.nodes.length).toBeGreaterThan(4);
    const versions = (await client.configHistory(pinger)).items;
    expect(history).toEqual(versions);
    expect(versions.map(({ canary }) => canary)).toMatchObject([
      { size: { share: 0.5 }, config: { every: 6 }, generation: 3, by: "API (admin)" },
      null,
      null,
    ]);
    expect(length).toMatchObject(await client.outputLength(pinger));
    expect(peek).toEqual(await client.peekOutput({ ...pinger, query: { n: 2 } }));
    const listed = (await client.listTasks(scraper)).items;
    expect(listed).toHaveLength(2);
    expect(byId(tasks)).toMatchObject(byId(listed));
    expect(task).toMatchObject(await client.getTask({ ...scraper, id: "a" }));
    expect(pools.map((pool) => ({ ...pool, waiting: pool.waiting.length }))).toMatchObject(
      (await client.listPools()).items,
    );
    const shown = (await client.listItems(sessions)).items;
    expect(shown.map(({ state }) => state)).toEqual(["held", "free"]);
    expect(byId(items)).toMatchObject(byId(shown));
  });
});

function byId(list: unknown): object[] {
  return (list as { id: string }[]).toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
