// Short settings; part of `npm test`. What is particular to Redis: scripts that the server has forgotten, servers that cannot be
// used, the limit on calls under way, and credentials that must not show anywhere.
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { inspect } from "node:util";
import { createClient } from "@redis/client";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { isFleetError } from "../src/errors.ts";
import { failureOf, range, until } from "../src/store/conformance/harness.ts";
import { declared } from "../src/store/conformance/producer.ts";
import { declaredQueue, task } from "../src/store/conformance/queue-driver.ts";
import { openRedisStore } from "../src/store/redis/store.ts";
import type { Store, StoreOptions } from "../src/store/store.ts";
import { freePort, type RedisServer, startRedis } from "./support/redis.ts";

const SECRET = "S3CRET-x/%y";
const opened: Store[] = [];

async function open(url: string, options: StoreOptions = {}): Promise<Store> {
  const store = await openRedisStore(url, { deadlineSeconds: 2, ...options });
  opened.push(store);
  return store;
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
});

describe("a server that forgets its scripts", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  async function admin(...args: string[]): Promise<unknown> {
    const client = createClient({ url: redis.url });
    await client.connect();
    const reply = await client.sendCommand(args);
    client.destroy();
    return reply;
  }

  it("gets them again after SCRIPT FLUSH, once", async () => {
    const store = await open(redis.url, { namespace: "flush" });
    const producer = await declared(store, "t");
    await producer.push(1);
    await admin("SCRIPT", "FLUSH");
    await admin("CONFIG", "RESETSTAT");
    await producer.push(2);
    await producer.push(3);
    expect(await store.streams.pop({ stream: "t", n: 9 })).toHaveLength(3);
    const stats = String(await admin("INFO", "commandstats"));
    // The push and the pop were each sent in full once; the other push went by its hash.
    expect(stats).toMatch(/cmdstat_eval:calls=2,/);
    expect(stats).toMatch(/cmdstat_evalsha:calls=3,.*failed_calls=2/);
  });

  it("gets the functions of queues when it does not know them, once, also after FUNCTION FLUSH", async () => {
    const store = await open(redis.url, { namespace: "functions" });
    const q = await declaredQueue(store);
    await admin("FUNCTION", "FLUSH");
    await admin("CONFIG", "RESETSTAT");
    expect(await q.submit(task("a"))).toEqual(["submitted"]);
    expect(await q.submit(task("b"))).toEqual(["submitted"]);
    expect(await q.claimIds("h", 9)).toEqual(["a", "b"]);
    const stats = String(await admin("INFO", "commandstats"));
    expect(stats).toMatch(/cmdstat_eval:calls=1,/);
    expect(stats).toMatch(/cmdstat_function\|load:calls=1,/);
    expect(stats).toMatch(/cmdstat_fcall:calls=3,.*failed_calls=1/);
  });

  it("takes no tasks where its memory is full, and forgets old ones all the same", async () => {
    const store = await open(redis.url, { namespace: "full" });
    const q = await declaredQueue(store, { keepCount: 0 });
    await q.submit(task("a"));
    await q.cancel("a");
    await admin("CONFIG", "SET", "maxmemory", "1");
    expect(isFleetError(await failureOf(() => q.submit(task("b"))), "FLEET_STORE_FAILED")).toBe(true);
    expect((await store.queues.sweep({ queue: q.queue })).forgotten).toBe(1);
    await admin("CONFIG", "SET", "maxmemory", "0");
    expect(await q.submit(task("b"))).toEqual(["submitted"]);
  });

  it("gets them and the fleet's id again after a restart without data", async () => {
    const store = await open(redis.url, { namespace: "restart" });
    const { fleetId } = store;
    await (await declared(store, "t")).push(1);
    await redis.restart();
    await until("the id is back", async () => {
      return (await admin("HGET", "{restart:fleet}:meta", "fleetId")) === fleetId;
    });
    expect(await store.streams.stats({ stream: "t" })).toBeUndefined();
    expect(await (await declared(store, "t")).push(2)).toMatchObject({ outcome: "pushed", length: 1 });
    expect((await open(redis.url, { namespace: "restart" })).fleetId).toBe(fleetId);
  });

  it("gets the fleet's id again after FLUSHALL, from the first to notice", async () => {
    const store = await open(redis.url, { namespace: "flushall" });
    const producer = await declared(store, "t");
    await admin("FLUSHALL");
    expect(await producer.push(1)).toEqual({ outcome: "undeclared" });
    await until("the id is back", async () => {
      return (await admin("HGET", "{flushall:fleet}:meta", "fleetId")) === store.fleetId;
    });
  });

  it("is refused when its layout is newer than this version", async () => {
    await admin("HSET", "{newer:fleet}:meta", "fleetId", "x", "schema", "2");
    const error = await failureOf(() => open(redis.url, { namespace: "newer" }));
    expect(isFleetError(error, "FLEET_STORE_INCOMPATIBLE")).toBe(true);
  });

  it("takes no more calls than it can keep while it stands still, and serves again afterwards", async () => {
    const store = await open(redis.url, { namespace: "still", deadlineSeconds: 1 });
    await store.streams.list();
    await redis.kill("SIGSTOP");
    const failures = await Promise.all(
      range(0, 30_000).map(() => failureOf(() => store.streams.length({ stream: "t" }))),
    );
    await redis.kill("SIGCONT");
    const codes = failures.map((error) => (isFleetError(error) ? error.code : "none"));
    expect(codes.filter((code) => code === "FLEET_STORE_BUSY").length).toBeGreaterThanOrEqual(10_000);
    expect(new Set(codes)).toEqual(new Set(["FLEET_STORE_BUSY", "FLEET_STORE_UNAVAILABLE"]));
    await until("calls work again", async () => (await failureOf(() => store.streams.list())) === undefined);
  });
});

describe("credentials", () => {
  let redis: RedisServer;
  const lines: string[] = [];
  const log: StoreOptions["log"] = (level, message, fields) =>
    lines.push(inspect({ level, message, fields }));

  beforeAll(async () => {
    redis = await startRedis({ password: SECRET });
  });
  afterAll(() => redis.stop());

  /** Everything that a person or a log could ever see of an error. */
  const shown = (error: unknown) =>
    [inspect(error, { depth: 20, showHidden: true }), String(error), JSON.stringify(error)].join("\n");

  const expectNoSecret = (text: string) => {
    for (const form of [SECRET, encodeURIComponent(SECRET), "S3CRET"]) expect(text).not.toContain(form);
  };

  it("with the right password the store opens, and shows it nowhere", async () => {
    const store = await open(redis.url, { log });
    await (await declared(store, "t")).push(1);
    expectNoSecret(inspect(store, { depth: 20, showHidden: true }));
    const error = await failureOf(() => store.streams.peek({ stream: "t", n: Number.NaN }));
    expect(isFleetError(error, "FLEET_STORE_FAILED")).toBe(true);
    expectNoSecret(shown(error));
  });

  it("a wrong one fails at once, and is not shown", async () => {
    const url = `redis://someone:${encodeURIComponent(SECRET)}@127.0.0.1:${redis.port}`;
    const started = performance.now();
    const error = await failureOf(() => open(url, { log, deadlineSeconds: 20 }));
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(isFleetError(error, "FLEET_STORE_AUTH")).toBe(true);
    expect(error).toMatchObject({ retryable: false });
    expectNoSecret(shown(error));
  });

  it("a missing one is an error of access", async () => {
    const error = await failureOf(() => open(`redis://127.0.0.1:${redis.port}`));
    expect(isFleetError(error, "FLEET_STORE_AUTH")).toBe(true);
  });

  it("an address where nobody listens fails within the deadline, and shows the address alone", async () => {
    const port = await freePort();
    for (const scheme of ["redis", "rediss", "redis+cluster"]) {
      const url = `${scheme}://someone:${encodeURIComponent(SECRET)}@127.0.0.1:${port}`;
      const started = performance.now();
      const error = await failureOf(() => open(url, { log, deadlineSeconds: 0.3 }));
      expect(performance.now() - started).toBeLessThan(2000);
      expect(isFleetError(error, "FLEET_STORE_UNAVAILABLE")).toBe(true);
      expect(error).toMatchObject({ retryable: true });
      expect((error as Error).message).toContain(`127.0.0.1:${port}`);
      expectNoSecret(shown(error));
    }
  });

  it("calls that lose their server show nothing either", async () => {
    const store = await open(redis.url, { log, deadlineSeconds: 1 });
    const watch = store.streams.watch({ stream: "t" }, () => undefined);
    await watch.ready;
    const pop = failureOf(() => store.streams.pop({ stream: "t", n: 1 }));
    await redis.kill();
    const errors = [await pop, await failureOf(() => store.streams.list())];
    expect(isFleetError(errors[1], "FLEET_STORE_UNAVAILABLE")).toBe(true);
    expectNoSecret(errors.map(shown).join("\n"));
    expect(lines.length).toBeGreaterThan(0);
    expectNoSecret(lines.join("\n"));
    await redis.start();
  });
});

describe("a server that cannot be used", () => {
  let server: Server | undefined;
  afterEach(() => server?.close());

  /** Speaks just enough to say who it is. */
  async function impostor(hello: string): Promise<string> {
    server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", (chunk) => {
        for (const [, command] of String(chunk).matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)) {
          socket.write(command === "HELLO" ? hello : "+OK\r\n");
        }
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return `redis://127.0.0.1:${(server.address() as { port: number }).port}`;
  }
  const hello = (version: string, mode: string) =>
    `%3\r\n+server\r\n+redis\r\n+version\r\n+${version}\r\n+mode\r\n+${mode}\r\n`;

  it.each([
    ["too old", hello("6.2.14", "standalone"), /version 6\.2\.14.*7\.0/],
    ["older still", "-ERR unknown command `HELLO`, with args\r\n", /older than Redis 7/],
    ["a node of a cluster", hello("7.2.4", "cluster"), /redis\+cluster/],
    ["a sentinel", hello("7.2.4", "sentinel"), /sentinel/],
  ])("%s", async (_, reply, message) => {
    const url = await impostor(reply);
    const error = await failureOf(() => open(url, { deadlineSeconds: 20 }));
    expect(isFleetError(error, "FLEET_STORE_INCOMPATIBLE")).toBe(true);
    expect((error as Error).message).toMatch(message);
  });

  it("no cluster, though the address says so", async () => {
    const url = (await impostor(hello("7.2.4", "standalone"))).replace("redis:", "redis+cluster:");
    const error = await failureOf(() => open(url, { deadlineSeconds: 20 }));
    expect(isFleetError(error, "FLEET_STORE_INCOMPATIBLE")).toBe(true);
  });

  it("one that accepts and never answers fails within the deadline", async () => {
    const url = await impostor("");
    const started = performance.now();
    const error = await failureOf(() => open(url, { deadlineSeconds: 0.3 }));
    expect(performance.now() - started).toBeLessThan(2000);
    expect(isFleetError(error, "FLEET_STORE_UNAVAILABLE")).toBe(true);
  });
});
