// Short settings; part of `npm test`. A store's password shows up nowhere (field case 38, at store level).
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isFleetError } from "../src/errors.ts";
import { failureOf, until } from "../src/store/conformance/harness.ts";
import { declared } from "../src/store/conformance/producer.ts";
import { openStore } from "../src/store/open.ts";
import { startProxy } from "./support/proxy.ts";
import { freePort, type RedisServer, startRedis } from "./support/redis.ts";
import { openShort } from "./support/stores.ts";

/** With characters that have another form in a URL, so both forms must stay out of sight. */
const SECRET = "S3CRET-x/y@z";
const ENCODED = encodeURIComponent(SECRET);
const TRACES = ["S3CRET", SECRET, ENCODED, Buffer.from(SECRET).toString("base64").slice(0, 12)];

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis({ password: "right" });
});
afterAll(() => server.stop());

/** Every text that an error can leave in a log, a crash report or an answer. */
function textsOf(error: unknown): string {
  const parts = [inspect(error, { depth: 10, showHidden: true }), JSON.stringify(error), String(error)];
  for (let one: unknown = error; one instanceof Error; one = one.cause) {
    parts.push(one.message, one.stack ?? "", JSON.stringify(one, Object.getOwnPropertyNames(one)));
  }
  return parts.join("\n");
}

function expectNoTrace(text: string): void {
  for (const trace of TRACES) expect(text).not.toContain(trace);
}

describe("38: a wrong or right password stays out of errors and logs", () => {
  const lines: unknown[] = [];
  const log = (...line: unknown[]) => void lines.push(line);
  const options = { log, deadlineSeconds: 5 };

  it.each([
    ["a wrong password", (): string => `redis://:${ENCODED}@127.0.0.1:${server.port}`, "FLEET_STORE_AUTH"],
    [
      "a wrong user",
      (): string => `redis://S3CRET-user:${ENCODED}@127.0.0.1:${server.port}`,
      "FLEET_STORE_AUTH",
    ],
    [
      "a wrong password and a database",
      (): string => `redis://:${ENCODED}@127.0.0.1:${server.port}/3`,
      "FLEET_STORE_AUTH",
    ],
    [
      "a password written raw",
      (): string => `redis://:S3CRET-raw@127.0.0.1:${server.port}`,
      "FLEET_STORE_AUTH",
    ],
    [
      "a cluster address",
      (): string => `redis+cluster://:${ENCODED}@127.0.0.1:${server.port}`,
      "FLEET_STORE_AUTH",
    ],
    ["TLS where there is none", (): string => `rediss://:${ENCODED}@127.0.0.1:${server.port}`, undefined],
    [
      "a port that cannot be read",
      (): string => `redis://:${ENCODED}@127.0.0.1:port`,
      "FLEET_STORE_URL_INVALID",
    ],
    [
      "a database that cannot be read",
      (): string => `redis://:${ENCODED}@127.0.0.1:1/S3CRET-db`,
      "FLEET_STORE_URL_INVALID",
    ],
    ["a half escaped password", (): string => "redis://:S3CRET%zz@127.0.0.1:1", "FLEET_STORE_URL_INVALID"],
    [
      "another scheme",
      (): string => `postgres://S3CRET-user:${ENCODED}@127.0.0.1:1`,
      "FLEET_STORE_URL_INVALID",
    ],
    ["a missing scheme", (): string => `:${ENCODED}@127.0.0.1:1`, "FLEET_STORE_URL_INVALID"],
    [
      "an unknown parameter of sentinels",
      (): string => `redis+sentinel://:${ENCODED}@127.0.0.1:1/m?S3CRET=S3CRET`,
      "FLEET_STORE_URL_INVALID",
    ],
  ] as const)("%s", async (_, url, code) => {
    lines.length = 0;
    const error: unknown = await failureOf(() => openStore(url(), options));
    expect(error).toSatisfy((e) => isFleetError(e), String(error));
    expect((error as { code: string }).code).toBe(code ?? (error as { code: string }).code);
    expectNoTrace(textsOf(error));
    expectNoTrace(inspect(lines, { depth: 10 }));
  });

  it("nobody at the address", async () => {
    lines.length = 0;
    const url = `redis://:${ENCODED}@127.0.0.1:${await freePort()}`;
    const error: unknown = await failureOf(() => openStore(url, { log, deadlineSeconds: 0.5 }));
    expect(error).toSatisfy((e) => isFleetError(e, "FLEET_STORE_UNAVAILABLE"), String(error));
    expectNoTrace(textsOf(error));
    expectNoTrace(inspect(lines, { depth: 10 }));
  });

  it("a store that was open and loses its server", { timeout: 60_000 }, async () => {
    lines.length = 0;
    const own = await startRedis({ password: SECRET });
    const proxy = await startProxy(own.port);
    const store = await openShort(`redis://:${ENCODED}@127.0.0.1:${proxy.port}`, { log, deadlineSeconds: 1 });
    try {
      const producer = await declared(store, "t");
      await producer.push("before");
      await own.kill();
      const errors = await Promise.all([
        failureOf(() => producer.push(1)),
        failureOf(() => store.streams.pop({ stream: "t", n: 1 })),
        failureOf(() => store.registry.view()),
        failureOf(() => store.wipe()),
        failureOf(() => store.events.subscribe({ pattern: "*" }, () => {}).ready),
      ]);
      for (const error of errors) {
        expect(error).toSatisfy((e) => isFleetError(e, "FLEET_STORE_UNAVAILABLE"), String(error));
        expectNoTrace(textsOf(error));
      }
      await until("a line about the loss", () => lines.length > 0);
      expectNoTrace(inspect(lines, { depth: 10 }));
      // Whoever prints the store itself.
      expectNoTrace(inspect(store, { depth: 12 }));
    } finally {
      await store.close();
      await proxy.close();
      await own.stop();
    }
    const late = await failureOf(() => store.streams.list());
    expect(late).toSatisfy((e) => isFleetError(e, "FLEET_CLOSED"));
    expectNoTrace(textsOf(late));
  });
});
