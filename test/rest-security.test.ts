// Short (`npm test`): nothing without the token, nothing told about it, and nothing that is too much, over real sockets.
import { request as httpRequest } from "node:http";
import { once } from "node:events";
import { connect } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { API_ROOT } from "../src/client/routes.ts";
import type { Log } from "../src/internal/log.ts";
import { SILENT } from "../src/internal/log.ts";
import { HANDLERS } from "../src/master/handlers.ts";
import { buildApp } from "../src/master/http/app.ts";
import { Authority } from "../src/master/http/authorise.ts";
import { addHealth } from "../src/master/http/health.ts";
import { addReference } from "../src/master/http/reference.ts";
import { openServices } from "../src/master/services.ts";
import type { Store } from "../src/store/store.ts";
import { fleetInStore, masterOn } from "./support/rest-fleet.ts";
import { restOn, TOKEN } from "./support/rest.ts";

const WRONG = "wrong-wrong-wrong-wrong";
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** All that is no right token. */
const ATTEMPTS: readonly Record<string, string>[] = [
  {},
  bearer(WRONG),
  { authorization: `Basic ${TOKEN}` },
  { cookie: TOKEN },
];

/** A log that keeps what it is told. */
function keptLog(): { log: Log; text: () => string } {
  const lines: string[] = [];
  const keep =
    (level: string) =>
    (message: string, fields?: object): void =>
      void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  return {
    log: { debug: keep("debug"), info: keep("info"), warn: keep("warn"), error: keep("error") },
    text: () => lines.join("\n"),
  };
}

/** The app with all that a master mounts. */
function wholeApp(store: Store) {
  const stopping = new AbortController();
  const { services, close } = openServices({ store, log: SILENT, stopping: stopping.signal });
  onTestFinished(async () => {
    stopping.abort();
    await close();
  });
  return buildApp({
    services,
    handlers: HANDLERS,
    authority: new Authority(TOKEN),
    extras: (hono, authorise) => {
      const metrics = () => Promise.resolve({ type: "text/plain", text: "" });
      addHealth(hono, { services, authorise, metrics, trouble: () => undefined });
      addReference(hono);
    },
  });
}

describe("the token", () => {
  it("is asked for by every address but /healthz and the files of the reference page", async () => {
    const { store } = await fleetInStore();
    const app = wholeApp(store);
    const mounted = app.routes.filter(({ method }) => method !== "ALL");
    expect(mounted.length).toBeGreaterThan(48);
    const asked = [
      ...mounted.map(({ method, path }) => ({ method, path })),
      { method: "GET", path: "/" },
      { method: "GET", path: `${API_ROOT}/nothing` },
      { method: "OPTIONS", path: `${API_ROOT}/automations` },
      { method: "POST", path: "/healthz" },
      { method: "GET", path: "/api/docs/../v1/automations" },
    ];
    const open: string[] = [];
    const refused: unknown[] = [];
    let caller = 0;
    for (const { method, path } of asked)
      for (const headers of ATTEMPTS) {
        caller += 1;
        // Each from an address of its own, so that none has used up its tries.
        const env = { incoming: { socket: { remoteAddress: `caller ${caller}` } } };
        const address = `http://m${path.replace(":file", "reference.js").replace(/:\w+/g, "x")}?token=${TOKEN}`;
        const response = await app.request(address, { method, headers }, env);
        const text = await response.text();
        if (response.ok) open.push(`${method} ${path}`);
        else
          refused.push([
            response.status,
            response.headers.get("www-authenticate"),
            (JSON.parse(text) as { code: string }).code,
          ]);
        expect(text).not.toContain(WRONG);
      }
    expect(new Set(refused.map((one) => JSON.stringify(one)))).toEqual(
      new Set([JSON.stringify([401, 'Bearer realm="fleet"', "FLEET_TOKEN_REFUSED"])]),
    );
    expect(refused.length).toBeGreaterThan(180);
    expect(new Set(open)).toEqual(new Set(["GET /healthz", "GET /api/docs", "GET /api/docs/:file"]));
  });

  it("is asked for before a WebSocket is opened", async () => {
    const master = await masterOn(await fleetInStore());
    for (const headers of [{}, bearer(WRONG)]) {
      const request = httpRequest(`${master.url}/api/v1/store`, {
        headers: {
          ...headers,
          connection: "upgrade",
          upgrade: "websocket",
          "sec-websocket-version": "13",
          "sec-websocket-key": "MDEyMzQ1Njc4OWFiY2RlZg==",
        },
      });
      request.end();
      const [response] = (await once(request, "response")) as [{ statusCode: number }];
      expect(response.statusCode).toBe(401);
      request.destroy();
    }
  });

  it("that is wrong again and again is answered 429, while the right one still passes", async () => {
    const { log, text } = keptLog();
    const master = await masterOn(await fleetInStore(), log);
    const wrong = () => fetch(`${master.url}${API_ROOT}/workers`, { headers: bearer(WRONG) });
    const answers: Response[] = [];
    for (let tries = 0; tries < 12; tries++) answers.push(await wrong());
    expect(answers.map(({ status }) => status)).toEqual([...Array<number>(10).fill(401), 429, 429]);
    const last = answers.at(-1);
    const seconds = Number(last?.headers.get("retry-after"));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(await last?.json()).toMatchObject({ status: 429, code: "FLEET_TOKEN_REFUSED" });
    expect((await master.fetch("/workers")).status).toBe(200);
    expect((await fetch(`${master.url}/healthz`)).status).toBe(200);
    await master.close();
    expect(text()).not.toContain(TOKEN);
    expect(text()).not.toContain(WRONG);
  });

  it("and whatever an unknown error holds is in no answer", async () => {
    const { store } = await fleetInStore();
    const registry = new Proxy(store.registry, {
      get: (target, name) =>
        name === "view"
          ? () => Promise.reject(new Error(`password=hunter2 ${TOKEN}`))
          : (Reflect.get(target, name) as unknown),
    });
    const rest = restOn({
      ...store,
      streams: store.streams,
      queues: store.queues,
      pools: store.pools,
      registry,
    });
    const { status, text } = await rest.call("GET", "/workers");
    expect(status).toBe(500);
    expect(text).not.toMatch(/hunter2|password/);
    expect(text).not.toContain(TOKEN);
  });
});

describe("every answer", () => {
  it("bears the headers that keep it to itself", async () => {
    const master = await masterOn(await fleetInStore());
    const events = await master.fetch("/events");
    await events.body?.cancel();
    const answers = [
      await master.fetch("/automations"),
      await master.fetch("/automations/nobody"),
      await master.fetch("/automations/pinger/output/pop", { method: "POST" }),
      await fetch(`${master.url}/healthz`),
      await fetch(`${master.url}${API_ROOT}/workers`),
      events,
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 200, 200, 401, 200]);
    for (const { headers } of answers) {
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("access-control-allow-origin")).toBeNull();
      expect(headers.get("set-cookie")).toBeNull();
    }
  });
});

describe("a request that is too much, or not what it should be", () => {
  it("is refused with a problem document, and changes nothing", async () => {
    const { store, ...place } = await fleetInStore();
    const master = await masterOn(place);
    const post = async (path: string, body: string | Uint8Array<ArrayBuffer>, headers = {}) => {
      const response = await master.fetch(path, { method: "POST", body, headers });
      expect(response.headers.get("content-type")).toBe("application/problem+json");
      return (await response.json()) as { status: number; code: string; detail: string };
    };
    const pop = "/automations/pinger/output/pop";
    const json = { "content-type": "application/json" };
    const deep = `{"n":${"[".repeat(5000)}${"]".repeat(5000)}}`;
    for (const [body, status, detail, headers] of [
      [`{"n":1,"x":"${"x".repeat(1024 * 1024)}"}`, 413, "larger than 1048576 bytes", json],
      [deep, 400, "deeper", json],
      [`{"n":1,"__proto__":{"n":1000}}`, 400, "__proto__", json],
      [`{"n":`, 400, "no JSON", json],
      [`[{"n":1}]`, 400, "an array", json],
      [new Uint8Array([0x7b, 0xff, 0x7d]), 400, "UTF-8", json],
      [`{"n":1}`, 415, "compressed", { ...json, "content-encoding": "gzip" }],
      [`{"n":1}`, 415, "text/plain", { "content-type": "text/plain" }],
      [`{"n":1,"m":1}`, 422, "/m", json],
    ] as const) {
      const problem = await post(pop, body, headers);
      expect(problem).toMatchObject({ status, code: "FLEET_REQUEST_INVALID" });
      expect(problem.detail).toContain(detail);
    }
    const long = await master.fetch(`/events?topics=${"a".repeat(9000)}`);
    expect([long.status, await long.json()]).toMatchObject([400, { detail: "the address is too long" }]);
    const huge = await master.fetch("/workers", { headers: { "x-filler": "x".repeat(20_000) } });
    expect(huge.status).toBe(431);
    expect(await store.streams.length({ stream: "pinger" })).toBe(3);
  });

  it("of a query is refused with the field, and not ignored", async () => {
    const master = await masterOn(await fleetInStore());
    const config = "/automations/pinger/config";
    for (const [method, path, pointer] of [
      ["GET", "/workers?limit=1&limit=2", "/limit"],
      ["GET", `${config}/history?cursor=abc`, "/cursor"],
      ["GET", `${config}/history?cursor=-5`, "/cursor"],
      ["PATCH", `${config}?labels=gpu=a,gpu=b`, "/labels"],
      ["PATCH", `${config}?labels=gpu`, "/labels"],
    ] as const) {
      const response = await master.fetch(path, {
        method,
        ...(method === "PATCH" ? { body: "{}" } : {}),
        headers: { "content-type": "application/json" },
      });
      const problem: unknown = await response.json();
      expect({ path, status: response.status, problem }).toMatchObject({
        path,
        status: 400,
        problem: { code: "FLEET_REQUEST_INVALID", errors: [{ pointer }] },
      });
    }
  });

  it("at an address or a host that no address can hold is answered with a problem document too", async () => {
    const master = await masterOn(await fleetInStore());
    const { hostname, port } = new URL(master.url);
    for (const [path, host] of [
      ["*", "x"],
      [`${API_ROOT}/automations`, "a b/../"],
    ]) {
      const socket = connect(Number(port), hostname);
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${TOKEN}\r\nConnection: close\r\n\r\n`,
      );
      const answer = await textOf(socket);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer.toLowerCase()).toContain("content-type: application/problem+json");
      expect(answer).toContain('"code":"FLEET_REQUEST_INVALID"');
    }
  });

  it("at an address that there is not is answered 404, with another method 405 and Allow", async () => {
    const master = await masterOn(await fleetInStore());
    for (const [method, path, status, allow] of [
      ["GET", "/nothing", 404, null],
      ["GET", "../../nothing", 404, null],
      ["DELETE", "/automations", 405, "GET"],
      ["GET", "/automations/pinger/pause", 405, "POST"],
      ["PUT", "/automations/scraper/tasks", 405, "POST, GET"],
      ["POST", "/openapi.json", 405, "GET"],
    ] as const) {
      const response = await master.fetch(path, { method });
      expect({ path, status: response.status, allow: response.headers.get("allow") }).toEqual({
        path,
        status,
        allow,
      });
      expect(response.headers.get("content-type")).toBe("application/problem+json");
      expect(await response.json()).toMatchObject({ type: "about:blank", status });
    }
  });
});

describe("the end of a master", () => {
  it("ends streams and long polls at once", async () => {
    const master = await masterOn(await fleetInStore());
    const submitted = await master.fetch("/automations/scraper/tasks", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id: "t1", payload: { url: "u" } }),
    });
    expect(submitted.status).toBe(201);
    const streams = await Promise.all(
      ["/events", "/automations/pinger/output/tail"].map((path) => master.fetch(path)),
    );
    const texts = streams.map((stream) => stream.text());
    let over = false;
    const poll = master.fetch("/automations/scraper/tasks/t1/result?wait_seconds=60");
    void poll.then(() => (over = true));
    // What is asked after the poll is answered, so the poll is under way.
    await master.fetch("/fleet");
    expect(over).toBe(false);
    const started = performance.now();
    await master.close();
    expect(performance.now() - started).toBeLessThan(2500);
    expect(await Promise.all(texts)).toEqual([": open\n\n", ": open\n\n"]);
    expect(await (await poll).json()).toMatchObject({ id: "t1", done: false, state: "waiting" });
    await expect(fetch(`${master.url}/healthz`)).rejects.toThrow("fetch failed");
  });

  it("comes also while somebody sends, and does not wait for it", async () => {
    const master = await masterOn(await fleetInStore());
    const slow = httpRequest(`${master.url}${API_ROOT}/automations/pinger/output/pop`, {
      method: "POST",
      headers: { ...bearer(TOKEN), "content-length": "100" },
    });
    slow.on("error", () => undefined);
    slow.write("{");
    await vi.waitFor(() => expect(slow.socket?.connecting).toBe(false));
    await master.fetch("/fleet");
    const started = performance.now();
    await master.close();
    expect(performance.now() - started).toBeLessThan(4000);
  });
});
