// Short (`npm test`): HEAD, as `curl -I` sends it, over real sockets.
import { once } from "node:events";
import { type IncomingMessage, request as httpRequest } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { API_ROOT } from "../src/client/routes.ts";
import { openStore } from "../src/store/open.ts";
import { ownMaster } from "./support/own-master.ts";
import { TOKEN } from "./support/rest.ts";

const TAIL = "/automations/out/output/tail";

/** A master on a store that counts what is asked of it for readers of streams of events. */
async function setUp() {
  const store = await openStore("sqlite::memory:");
  const bounds = { maxLength: 100, ttlMs: 600_000, maxPayloadBytes: 1000 };
  await store.streams.declare({ stream: "out", bounds, as: "owner" });
  const asked: string[] = [];
  const counting = <T extends object>(port: T): T =>
    new Proxy(port, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return (...args: unknown[]): unknown => {
          asked.push(String(name));
          return Reflect.apply(value, target, args);
        };
      },
    });
  const [events, streams] = [counting(store.events), counting(store.streams)];
  const counted = new Proxy(store, {
    get: (target, name) => {
      if (name === "events") return events;
      if (name === "streams") return streams;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? (value as () => unknown).bind(target) : value;
    },
  });
  const { master } = await ownMaster({ store: counted });
  const ask = async (method: string, path: string, headers: Record<string, string> = {}) => {
    const request = httpRequest(master.url + API_ROOT + path, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, ...headers },
    });
    onTestFinished(() => void request.destroy());
    request.on("error", () => undefined).end();
    const [response] = (await once(request, "response")) as [IncomingMessage];
    return response;
  };
  return { ask, taken: (name: string) => asked.filter((one) => one === name).length };
}

it("of a stream of events is answered with its headers, and leaves nobody listening", async () => {
  const { ask, taken } = await setUp();
  for (const path of ["/events", "/events?topics=a,b.*", TAIL]) {
    const response = await ask("HEAD", path);
    expect(response.statusCode).toBe(200);
    expect(response.headers["content-type"]).toContain("text/event-stream");
    expect(await response.toArray()).toEqual([]);
  }
  expect([taken("subscribe"), taken("peek")]).toEqual([0, 0]);
  // GET of the same does ask the store.
  for (const path of ["/events", TAIL]) await once(await ask("GET", path), "data");
  expect(taken("subscribe")).toBe(1);
  expect(taken("peek")).toBeGreaterThan(0);
});

it("is asked for the token, and for what the address and the headers may be; what GET looks up for a stream of events is not", async () => {
  const { ask } = await setUp();
  expect((await ask("HEAD", "/events", { authorization: "" })).statusCode).toBe(401);
  expect((await ask("HEAD", "/events?topic=a")).statusCode).toBe(400);
  expect((await ask("HEAD", "/automations")).statusCode).toBe(200);
  for (const [path, status] of [
    ["/automations/none/output/tail", 404],
    ["/events?topics=a,,b", 400],
  ] as const) {
    expect((await ask("GET", path)).statusCode).toBe(status);
    expect((await ask("HEAD", path)).statusCode).toBe(200);
  }
});
