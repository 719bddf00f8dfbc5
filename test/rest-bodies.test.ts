// Short (`npm test`): broken bodies on each route that takes or could take one. The table of routes says which there are.
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { z } from "zod";
import type { Route } from "../src/client/route.ts";
import { ROUTES, type RouteName } from "../src/client/routes.ts";
import { definePool } from "../src/contracts/pool.ts";
import { defineBatch } from "../src/index.ts";
import { type Place, PLACES } from "./support/places.ts";
import { publish, type Rest, restOn, storeAt } from "./support/rest.ts";

const table = ROUTES as Record<string, Route>;
const WRITES = Object.keys(ROUTES).filter((name) => table[name]?.method !== "GET") as RouteName[];

const SESSIONS = definePool("sessions", { payload: z.object({ cookie: z.string() }) });
const SCRAPER = defineBatch("scraper", {
  config: z.object({ depth: z.number().default(1) }),
  tasks: { payload: z.object({ url: z.string() }) },
  output: z.object({ url: z.string() }),
  uses: { put: [SESSIONS] },
  runOne: () => undefined,
});
const payload = { url: "https://example.com/" };

interface Sample {
  path: string;
  body?: object;
  /** Where a right call is refused for another reason than its body. */
  status?: number;
}

/** One right call of each route, on what `setUp` has made. */
const samples = (made: { token: string; worker: string }): Partial<Record<RouteName, Sample>> => ({
  patchConfig: { path: "/automations/scraper/config", body: { depth: 2 } },
  rollbackConfig: { path: "/automations/scraper/config/rollback", body: { generation: 1 } },
  promoteCanary: { path: "/automations/scraper/config/canary/promote", status: 409 },
  stopCanary: { path: "/automations/scraper/config/canary/stop", status: 409 },
  setSlots: { path: "/automations/scraper/slots", body: { count: 2 } },
  pauseAutomation: { path: "/automations/scraper/pause" },
  resumeAutomation: { path: "/automations/scraper/resume" },
  recycleAutomation: { path: "/automations/scraper/recycle" },
  popOutput: { path: "/automations/scraper/output/pop" },
  submitTasks: { path: "/automations/scraper/tasks", body: { payload } },
  retryTask: { path: "/automations/scraper/tasks/ended/retry" },
  cancelTask: { path: "/automations/scraper/tasks/waits/cancel" },
  putSchedule: { path: "/automations/scraper/schedules", body: { id: "s", every_seconds: 60, payload } },
  runSchedule: { path: "/automations/scraper/schedules/hourly/run" },
  pauseSchedule: { path: "/automations/scraper/schedules/hourly/pause" },
  resumeSchedule: { path: "/automations/scraper/schedules/hourly/resume" },
  removeSchedule: { path: "/automations/scraper/schedules/hourly" },
  putItem: { path: "/pools/sessions/items", body: { payload: { cookie: "c" } } },
  removeItem: { path: "/pools/sessions/items/free" },
  claimItem: { path: "/pools/sessions/claim" },
  extendClaim: { path: `/pools/sessions/claims/${made.token}/extend` },
  releaseClaim: { path: `/pools/sessions/claims/${made.token}/release` },
  publishEvent: { path: "/events/news", body: { payload: 1 } },
  drainWorker: { path: `/workers/${made.worker}/drain` },
  cordonWorker: { path: `/workers/${made.worker}/cordon` },
  uncordonWorker: { path: `/workers/${made.worker}/uncordon` },
  removeWorker: { path: "/workers/gone" },
});

async function setUp(): Promise<{ rest: Rest; made: { token: string; worker: string } }> {
  const { store } = await storeAt(PLACES[0] as Place);
  await publish(store, [SCRAPER]);
  const rest = restOn(store);
  const desired = {
    slots: 1,
    config: {},
    paused: false,
    deployed: {},
    changedBy: { slots: "deploy", config: "deploy" },
  };
  await store.registry.putDesired({
    name: "scraper",
    desired: { ...desired, generation: 1 },
    expected: 0,
    record: { by: "deploy", note: null },
  });
  await rest.client.submitTasks({
    name: "scraper",
    body: { tasks: ["ended", "waits"].map((id) => ({ id, payload })) },
  });
  await rest.client.cancelTask({ name: "scraper", id: "ended" });
  await rest.client.putSchedule({ name: "scraper", body: { id: "hourly", every_seconds: 3600, payload } });
  for (const id of ["held", "free"])
    await rest.client.putItem({ name: "sessions", body: { id, payload: { cookie: "c" } } });
  const { lease } = await rest.client.claimItem({ name: "sessions", body: { hold_seconds: 600 } });
  const [worker] = (await store.registry.view()).workers;
  if (worker === undefined) throw new Error("no worker");
  const gone = { ...worker, id: "gone", incarnation: "gone" };
  await store.registry.register({ worker: gone, manifests: [], ttlMs: 60_000 });
  await store.registry.deregister({ workerId: "gone", incarnation: "gone" });
  return { rest, made: { token: lease?.token ?? "", worker: worker.id } };
}

const JSON_TYPE = { "content-type": "application/json" };

interface Broken {
  what: string;
  body: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
  status: number;
}

/** What is no JSON object, and what the answer is. */
const BROKEN: readonly Broken[] = [
  ...[
    "{",
    "null",
    "[]",
    "[{}]",
    '"text"',
    "7",
    "true",
    "}",
    "{'a':1}",
    '{"a":1',
    '{"a":NaN}',
    "undefined",
    "{}{}",
  ].map((body) => ({ what: body, body, status: 400 })),
  { what: "a key __proto__", body: '{"__proto__":{"a":1}}', status: 400 },
  { what: "a deep key __proto__", body: '{"a":[{"__proto__":1}]}', status: 400 },
  { what: "deep nesting", body: `{"a":${"[".repeat(100)}${"]".repeat(100)}}`, status: 400 },
  { what: "very deep nesting", body: `{"a":${"[".repeat(200_000)}`, status: 400 },
  {
    what: "bytes that are no UTF-8",
    body: new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
    status: 400,
  },
  { what: "text", body: "{}", headers: { "content-type": "text/plain" }, status: 415 },
  { what: "XML", body: "<a/>", headers: { "content-type": "application/xml" }, status: 415 },
  {
    what: "a form",
    body: "{}",
    headers: { "content-type": "multipart/form-data; boundary=x" },
    status: 415,
  },
  {
    what: "compressed",
    body: new Uint8Array(gzipSync("{}")),
    headers: { ...JSON_TYPE, "content-encoding": "gzip" },
    status: 415,
  },
  { what: "fields that are not known", body: '{"no_such_field":1}', status: 422 },
];

const OPEN = new Set<RouteName>(["patchConfig"]);

it("has a right call of each route that writes", () => {
  expect(Object.keys(samples({ token: "", worker: "" })).toSorted()).toEqual(WRITES.toSorted());
  expect(WRITES.length).toBeGreaterThan(20);
});

const route = (name: RouteName) => table[name] as Route;
const needsNone = (name: RouteName) => route(name).body === undefined || route(name).bodyOptional === true;

it.each(WRITES)("%s answers what is no JSON object with a code, and changes nothing", async (name) => {
  const { rest, made } = await setUp();
  const { path, body: right, status } = samples(made)[name] as Sample;
  const { method, status: good, maxBodyBytes = 1024 * 1024 } = route(name);
  const large: Broken = { what: "too large", body: `{"a":"${"x".repeat(maxBodyBytes)}"}`, status: 413 };
  for (const { what, body, headers = JSON_TYPE, status: expected } of [...BROKEN, large]) {
    const response = await rest.request(method, path, { body, headers });
    const problem = (await response.json()) as Record<string, unknown>;
    const answer = {
      what,
      status: response.status,
      code: problem["code"],
      type: response.headers.get("content-type"),
    };
    // A merge patch may have any field: that one is the config's affair.
    if (expected === 422 && OPEN.has(name)) continue;
    expect(answer).toEqual({
      what,
      status: expected,
      code: "FLEET_REQUEST_INVALID",
      type: "application/problem+json",
    });
  }
  // All is as it was: the right call does what it would have done at first.
  const answer = await rest.call(method, path, right);
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: status ?? good });
});

it.each(WRITES.filter(needsNone))("%s needs no body, whatever its header says of one", async (name) => {
  for (const headers of [{ ...JSON_TYPE, "content-length": "0" }, { "content-type": "text/plain" }]) {
    const { rest, made } = await setUp();
    const { path, status } = samples(made)[name] as Sample;
    const response = await rest.request(route(name).method, path, { headers });
    expect({ headers, status: response.status }).toEqual({ headers, status: status ?? route(name).status });
  }
});

it.each(WRITES.filter((name) => route(name).body !== undefined))(
  "%s reads JSON also without a content type, and with that of curl",
  async (name) => {
    for (const type of [undefined, "application/x-www-form-urlencoded"]) {
      const headers: Record<string, string> = type === undefined ? {} : { "content-type": type };
      const { rest, made } = await setUp();
      const { path, body = {}, status } = samples(made)[name] as Sample;
      const bytes = new TextEncoder().encode(JSON.stringify(body));
      const response = await rest.request(route(name).method, path, { body: bytes, headers });
      expect({ headers, status: response.status }).toEqual({ headers, status: status ?? route(name).status });
    }
  },
);

it.each(WRITES.filter((name) => !needsNone(name)))("%s needs a body", async (name) => {
  const { rest, made } = await setUp();
  const { path } = samples(made)[name] as Sample;
  for (const body of ["", "  \n"]) {
    const response = await rest.request(route(name).method, path, { body, headers: JSON_TYPE });
    expect({ body, status: response.status }).toEqual({ body, status: 400 });
  }
});
