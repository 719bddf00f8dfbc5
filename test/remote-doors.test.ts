// Short settings; part of `npm test`. What a served store lets in: tokens, origins, versions, calls by name, and what is no call at all.
import { isStoreLost } from "../src/automation/store-lost.ts";
import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { FleetError, isFleetError } from "../src/errors.ts";
import { CLOSE, MAX_REQUESTS, REMOTE_PROTOCOL, STORE_PATH } from "../src/protocol/remote.ts";
import { VERSION } from "../src/protocol/version.ts";
import { failureOf, range, until } from "../src/store/conformance/harness.ts";
import { declared, entry } from "../src/store/conformance/producer.ts";
import { openStore } from "../src/store/open.ts";
import { openRemoteStore } from "../src/store/remote/store.ts";
import type { Store } from "../src/store/store.ts";
import { openServed, type ServedStore, serveOn, TOKEN } from "./support/served.ts";

let direct: Store;
let master: ServedStore;
beforeEach(async () => {
  direct = await openStore("sqlite::memory:", { namespace: "own" });
  master = await serveOn(direct);
});
afterEach(async () => {
  await master.close();
  await direct.close();
});

const HELLO = { hello: { protocol: REMOTE_PROTOCOL, version: VERSION } };

interface Raw {
  socket: WebSocket;
  /** All messages so far. */
  heard: Record<string, unknown>[];
  say: (...messages: unknown[]) => void;
  /** The answer to a request, by its id. */
  answer: (id: number) => Promise<Record<string, unknown>>;
  closed: Promise<number>;
}

async function raw(headers: Record<string, string> = {}): Promise<Raw> {
  const socket = new WebSocket(`ws://127.0.0.1:${master.port}${STORE_PATH}`, {
    headers: { authorization: `Bearer ${TOKEN}`, ...headers },
  });
  const heard: Record<string, unknown>[] = [];
  socket.on("message", (data) =>
    heard.push(...(JSON.parse((data as Buffer).toString()) as Record<string, unknown>[])),
  );
  socket.on("error", () => undefined);
  const closed = once(socket, "close").then(([code]) => code as number);
  await once(socket, "open");
  return {
    socket,
    heard,
    say: (...messages) => socket.send(JSON.stringify(messages)),
    answer: async (id) => {
      await until(`answer ${id}`, () => heard.some((message) => message["id"] === id));
      return heard.find((message) => message["id"] === id) ?? {};
    },
    closed,
  };
}

/** The status that an attempt to connect is answered with. */
function statusOf(path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${master.port}${path}`, { headers });
    socket.once("unexpected-response", (_, response) => {
      resolve(response.statusCode ?? 0);
      socket.terminate();
    });
    socket.once("open", () => {
      socket.terminate();
      resolve(101);
    });
    socket.on("error", reject);
  });
}

describe("who may come in", () => {
  const authorization = `Bearer ${TOKEN}`;
  it.each([
    [{}, 401],
    [{ authorization: "Bearer wrong" }, 401],
    [{ authorization: TOKEN }, 401],
    [{ authorization: `Basic ${TOKEN}` }, 401],
    [{ authorization: `Bearer ${TOKEN}x` }, 401],
    [{ authorization, origin: "http://evil.example" }, 403],
    [{ authorization, origin: "null" }, 403],
    [{ authorization }, 101],
  ])("with %j: %i", async (headers, status) => {
    expect(await statusOf(STORE_PATH, headers)).toBe(status);
  });

  it("a page of the master itself may", async () => {
    expect(await statusOf(STORE_PATH, { authorization, origin: master.url })).toBe(101);
  });

  it("a wrong token, none, and no master are told apart", async () => {
    const refused = await failureOf(() => openServed(master.url, { token: "flt_S3CRET-x" }));
    expect(refused).toMatchObject({ code: "FLEET_TOKEN_REFUSED", retryable: false });
    expect(JSON.stringify(refused) + String(refused)).not.toContain("S3CRET");
    expect(await failureOf(() => openStore(master.url))).toMatchObject({ code: "FLEET_TOKEN_REFUSED" });
    const elsewhere = await failureOf(() => openServed(`${master.url}/not/here`, { deadlineSeconds: 0.5 }));
    expect(elsewhere).toMatchObject({ code: "FLEET_STORE_INCOMPATIBLE" });
    const nobody = await failureOf(() => openServed("http://127.0.0.1:1", { deadlineSeconds: 0.3 }));
    expect(nobody).toMatchObject({ code: "FLEET_STORE_UNAVAILABLE", retryable: true });
  });

  it("a token that is revoked ends its links", async () => {
    const allowed = { now: true };
    const other = await serveOn(direct, { authorise: () => allowed.now });
    const link = await openServed(other.url, { deadlineSeconds: 0.5 });
    expect(other.server.links).toBe(1);
    allowed.now = false;
    await until("the link to end", () => other.server.links === 0, 8000);
    // Whoever runs the master can put it right: to a run that is under way the store is away, and its code is not to blame.
    const refused = await failureOf(() => link.now());
    expect(refused).toMatchObject({ code: "FLEET_TOKEN_REFUSED", retryable: true });
    expect(isStoreLost(refused)).toBe(true);
    allowed.now = true;
    await until("the link to be back", async () => (await failureOf(() => link.now())) === undefined, 8000);
    await link.close();
    await other.close();
  });

  it("who goes away while it is asked about harms nobody", async () => {
    let asked = 0;
    let decide: (allowed: boolean) => void = () => undefined;
    const authorise = () => {
      asked += 1;
      return asked === 1 ? new Promise<boolean>((resolve) => (decide = resolve)) : true;
    };
    const other = await serveOn(direct, { authorise });
    const gone = connect(other.port, "127.0.0.1");
    gone.write(
      [
        `GET ${STORE_PATH} HTTP/1.1`,
        "Host: x",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        "",
        "",
      ].join("\r\n"),
    );
    await until("the question", () => asked === 1);
    gone.resetAndDestroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    decide(true);
    const link = await openServed(other.url);
    expect(await link.now()).toEqual(expect.any(Number));
    await until("the other to be forgotten", () => other.server.links === 1);
    await link.close();
    await other.close();
  });

  it("a token may be for some calls only", async () => {
    const authorise = () => ({ allows: (call: string) => call !== "wipe" && call !== "events.watch" });
    const other = await serveOn(direct, { authorise });
    const link = await openServed(other.url);
    await (await declared(link, "t")).push(1);
    expect(await failureOf(() => link.wipe())).toMatchObject({ code: "FLEET_STORE_AUTH" });
    const deaf = link.events.subscribe({ pattern: "*" }, () => undefined);
    expect(await failureOf(() => deaf.ready)).toMatchObject({ code: "FLEET_STORE_AUTH" });
    expect(await direct.streams.length({ stream: "t" })).toBe(1);
    await link.close();
    await other.close();
  });
});

describe("the greeting", () => {
  it("tells the namespace that is served", async () => {
    const link = await openServed(master.url);
    expect(link).toMatchObject({
      namespace: "own",
      fleetId: direct.fleetId,
      traits: { kind: "sqlite", multiProcess: true, multiHost: true },
    });
    await link.close();
    const other = await failureOf(() => openServed(master.url, { namespace: "other" }));
    expect(other).toMatchObject({ code: "FLEET_STORE_INCOMPATIBLE" });
    expect(String(other)).toContain('serves the namespace "own", not "other"');
  });

  it.each([
    [{ protocol: REMOTE_PROTOCOL + 1, version: VERSION }, "speaks protocol"],
    [{ protocol: REMOTE_PROTOCOL, version: "99.0.0" }, "is of version"],
    [{}, "speaks protocol"],
  ])("refuses %j and says why", async (hello, why) => {
    const link = await raw();
    link.say({ hello });
    expect(await link.closed).toBe(CLOSE.refused);
    expect(link.heard).toEqual([
      {
        refused: expect.objectContaining({
          code: "FLEET_STORE_INCOMPATIBLE",
          message: expect.stringContaining(why),
        }),
      },
    ]);
  });

  it("takes nothing before it", async () => {
    const link = await raw();
    link.say({ id: 1, call: "wipe" });
    expect(await link.closed).toBe(CLOSE.malformed);
    expect(link.heard).toEqual([]);
  });

  it("is refused by a client that is of another version, or not spoken to by a master", async () => {
    const sayings = [
      `[{"welcome":{"protocol":${REMOTE_PROTOCOL},"version":"99.1.0","namespace":"","fleetId":"x","traits":{}}}]`,
      `[{"welcome":{"protocol":99,"version":"${VERSION}","namespace":"","fleetId":"x","traits":{}}}]`,
      "[{}]",
      "hello",
    ];
    for (const saying of sayings) {
      const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
      server.on("connection", (socket) => socket.once("message", () => socket.send(saying)));
      await once(server, "listening");
      const { port } = server.address() as { port: number };
      const error = await failureOf(() => openServed(`http://127.0.0.1:${port}`));
      expect({ saying, error }).toMatchObject({ error: { code: "FLEET_STORE_INCOMPATIBLE" } });
      server.close();
    }
  });
});

describe("calls by name", () => {
  it.each([
    "close",
    "own.now",
    "own.close",
    "constructor",
    "__proto__",
    "streams",
    "streams.constructor",
    "streams.__proto__",
    "streams.watch",
    "events.subscribe",
    "state.locks.acquire",
    "registry.toString",
    "",
  ])("%j is none", async (call) => {
    const link = await raw();
    link.say(HELLO, { id: 1, call }, { id: 2, call: "now" });
    expect(await link.answer(1)).toMatchObject({ error: { code: "FLEET_STORE_INCOMPATIBLE" } });
    expect(await link.answer(2)).toMatchObject({ ok: expect.any(Number) });
    link.socket.close();
  });

  it.each([
    ["streams.pop", undefined, "an object"],
    ["streams.pop", null, "an object"],
    ["streams.pop", [], "an object"],
    ["streams.pop", { stream: 1, n: 1 }, "not a valid name"],
    ["streams.pop", { stream: "../x", n: 1 }, "not a valid name"],
    ["streams.pop", { stream: "t" }, "streams.pop.n must be a whole number, got undefined"],
    ["streams.pop", { stream: "t", n: -1 }, "at least 0"],
    ["streams.pop", { stream: "t", n: 1e9 }, "at most"],
    ["streams.pop", { stream: "t", n: 1, wait: 5 }, 'unknown field "wait"'],
    ["streams.push", { stream: "t", entries: {}, op: { producer: "p", seq: 1 } }, "a list"],
    [
      "streams.push",
      { stream: "t", entries: [1], op: { producer: "p", seq: 1 } },
      "entries[0] must be an object",
    ],
    ["streams.push", { stream: "t", entries: [{ id: "1", head: {}, tail: "" }], op: {} }, "entries[0].head"],
    ["queues.submit", { queue: "q", lists: [[{}]] }, "lists[0][0].id"],
    ["pools.claim", { pool: "p", where: { tag: "x" } }, "where.tag must be a list"],
    ["counters.add", { name: "c", key: "", by: 1.5, op: { producer: "p", seq: 1 } }, "a whole number"],
    ["events.publish", { topic: "a b", source: "s", payload: "1" }, "not a valid name"],
    ["registry.view", { all: true }, "left out"],
    [
      "registry.putDesired",
      { name: "a", desired: { slots: 10_001, generation: 1 }, expected: 0 },
      "slots must be at most 10000",
    ],
    [
      "registry.register",
      { worker: { id: "w", incarnation: "i", labels: {} }, manifests: [], ttlMs: 1 },
      "worker.automations must be a list",
    ],
    [
      "registry.register",
      { worker: { id: "__proto__", incarnation: "i" }, manifests: [], ttlMs: 1 },
      "not a valid name",
    ],
    ["now", 1, "left out"],
  ])("%s with %j is refused with %j", async (call, args, why) => {
    const link = await raw();
    link.say(HELLO, { id: 1, call, args }, { id: 2, call: "now" });
    const { error } = (await link.answer(1)) as { error: { code: string; message: string } };
    expect(error.code).toMatch(/^FLEET_(OPTION|NAME)_INVALID$/);
    expect(error.message).toContain(why);
    expect(await link.answer(2)).toMatchObject({ ok: expect.any(Number) });
    link.socket.close();
  });

  it("a watch that is none, or with a wrong argument, is refused", async () => {
    const link = await raw();
    link.say(
      HELLO,
      { id: 1, watch: "store" },
      { id: 2, watch: "streams", args: {} },
      { id: 3, watch: {} },
      { id: 4 },
    );
    for (const id of [1, 3, 4])
      expect(await link.answer(id)).toMatchObject({ error: { code: "FLEET_STORE_INCOMPATIBLE" } });
    expect(await link.answer(2)).toMatchObject({ error: { code: "FLEET_NAME_INVALID" } });
    link.socket.close();
  });

  it("what the store behind says of its own trouble travels, without its address's password", async () => {
    const broken: Store = {
      ...direct,
      fleetId: direct.fleetId,
      now: () =>
        Promise.reject(
          new FleetError("FLEET_STORE_UNAVAILABLE", "no answer from redis://u:S3CRET-x@h:1", {
            retryable: true,
            outcome: "unknown",
            issues: [{ pointer: "/a", message: "m" }],
            cause: new Error("S3CRET-x"),
          }),
        ),
      wipe: () => Promise.reject(new TypeError("at redis://:S3CRET-x@h")),
      streams: { ...direct.streams, list: () => Promise.reject(new FleetError("FLEET_CLOSED", "closed")) },
    };
    const other = await serveOn(broken);
    const link = await openServed(other.url);
    const error = await failureOf(() => link.now());
    expect(error).toSatisfy((e) => isFleetError(e, "FLEET_STORE_UNAVAILABLE"));
    expect(error).toMatchObject({
      retryable: true,
      outcome: "unknown",
      issues: [{ pointer: "/a", message: "m" }],
    });
    const failed = await failureOf(() => link.wipe());
    expect(failed).toMatchObject({ code: "FLEET_STORE_FAILED" });
    expect(`${String(error)}${JSON.stringify(error)}${String(failed)}`).not.toContain("S3CRET");
    // The handle here was not closed: the one behind it was.
    expect(await failureOf(() => link.streams.list())).toMatchObject({
      code: "FLEET_STORE_UNAVAILABLE",
      retryable: true,
    });
    await link.close();
    await other.close();
  });
});

describe("what is no call", () => {
  it.each([
    ["no JSON", "x"],
    ["no array", "{}"],
    ["an array of no messages", "[1]"],
    ["null", "[null]"],
    ["no id", '[{"call":"now"}]'],
    ["an id that is no number", '[{"id":"1","call":"now"}]'],
    ["deep", `${"[".repeat(100_000)}${"]".repeat(100_000)}`],
  ])("%s ends the link, and only that one", async (_, frame) => {
    const [link, other] = await Promise.all([raw(), raw()]);
    link.say(HELLO);
    other.say(HELLO);
    link.socket.send(frame);
    // A list of lists has messages without an id.
    expect(await link.closed).toBe(CLOSE.malformed);
    other.say({ id: 1, call: "now" });
    expect(await other.answer(1)).toMatchObject({ ok: expect.any(Number) });
    other.socket.close();
  });

  it("binary frames end it", async () => {
    const link = await raw();
    link.socket.send(Buffer.from(JSON.stringify([HELLO])), { binary: true });
    expect(await link.closed).toBe(CLOSE.malformed);
  });

  it("an id that is used twice ends it", async () => {
    const link = await raw();
    link.say(HELLO, { id: 1, watch: "registry" });
    await link.answer(1);
    link.say({ id: 1, watch: "registry" });
    expect(await link.closed).toBe(CLOSE.malformed);
  });

  it("a frame beyond all bounds ends it, unread", async () => {
    const link = await raw();
    link.say(HELLO);
    await until("the welcome", () => link.heard.length > 0);
    link.socket.send(`["${"x".repeat(64 * 1024 * 1024)}"]`);
    expect(await link.closed).toBe(1009);
  });
});

describe("many", () => {
  it("watches of one link have a bound, calls go on", async () => {
    const link = await raw();
    const half = MAX_REQUESTS / 2;
    const watches = (from: number, to: number) => range(from, to).map((id) => ({ id, watch: "registry" }));
    link.say(HELLO, ...watches(1, half + 1));
    await link.answer(half);
    link.say(...watches(half + 1, MAX_REQUESTS + 3));
    const refused = await Promise.all([MAX_REQUESTS + 1, MAX_REQUESTS + 2].map((id) => link.answer(id)));
    for (const answer of refused)
      expect(answer).toMatchObject({ error: { code: "FLEET_STORE_BUSY", retryable: true } });
    expect(await link.answer(MAX_REQUESTS)).not.toHaveProperty("error");
    link.say({ cancel: 1 }, { id: 30_000, watch: "registry" }, { id: 30_001, call: "now" });
    expect(await link.answer(30_000)).not.toHaveProperty("error");
    expect(await link.answer(30_001)).toMatchObject({ ok: expect.any(Number) });
    link.socket.close();
    await link.closed;
  }, 60_000);
});

describe("large ones", () => {
  it("are carried up to the bounds, and refused before they are sent above them", async () => {
    const link = await openServed(master.url, { deadlineSeconds: 20 });
    await direct.streams.declare({
      stream: "t",
      bounds: { maxLength: 100, ttlMs: 1e9, maxPayloadBytes: 1e9 },
      as: "owner",
    });
    const megabytes = (n: number) => "ü".repeat(n * 512 * 1024);
    const op = { producer: "p", seq: 0 };
    for (const seq of range(1, 4))
      await link.streams.push({ stream: "t", entries: [entry(megabytes(10))], op: { ...op, seq } });
    const entries = await link.streams.peek({ stream: "t", n: 10 });
    expect(entries.map(({ raw: text }) => Buffer.byteLength(text) > 10_000_000)).toEqual([true, true, true]);
    const error = await failureOf(() =>
      link.streams.push({ stream: "t", entries: [entry(megabytes(65))], op: { ...op, seq: 4 } }),
    );
    expect(error).toMatchObject({ code: "FLEET_PAYLOAD_TOO_LARGE" });
    expect(await link.streams.length({ stream: "t" })).toBe(3);
    await link.close();
  }, 60_000);
});

describe("pushes", () => {
  it("a receiver that takes nothing is cut off, and its watches end", async () => {
    const link = await raw();
    link.say(HELLO, { id: 1, watch: "events", args: { pattern: "*" } });
    await link.answer(1);
    link.socket.pause();
    const payload = JSON.stringify("x".repeat(60_000));
    let published = 0;
    const publishing = (async () => {
      while (master.server.links > 0 && published < 2000) {
        await direct.events.publish({ topic: "t", source: "s", payload });
        published += 1;
      }
    })();
    await publishing;
    expect(master.server.links).toBe(0);
    // Beyond what the kernel and the outbox hold, and far from all.
    expect(published).toBeLessThan(1000);
    link.socket.terminate();
  }, 60_000);

  it("another fleet id behind is told", async () => {
    let id = "first";
    const changing: Store = Object.defineProperty({ ...direct }, "fleetId", { get: () => id });
    const other = await serveOn(changing);
    const link = await openServed(other.url);
    expect(link.fleetId).toBe("first");
    id = "second";
    await link.now();
    expect(link.fleetId).toBe("second");
    await link.close();
    await other.close();
  });
});

describe("addresses and options", () => {
  it.each(["http://h/?x=1", "http://h/#x", "http://u@h", "https://:p@h:1", "http://", "https://h:99999"])(
    "%s is refused",
    async (url) => {
      expect(await failureOf(() => openServed(url))).toMatchObject({ code: "FLEET_STORE_URL_INVALID" });
    },
  );

  it("options that are another store's are refused", async () => {
    for (const options of [{ clockOffsetMs: 1 }, { frozenNow: () => 1 }])
      expect(await failureOf(() => openRemoteStore(master.url, { token: TOKEN, ...options }))).toMatchObject({
        code: "FLEET_OPTION_INVALID",
      });
    expect(await failureOf(() => openStore("sqlite::memory:", { token: "x" }))).toMatchObject({
      code: "FLEET_OPTION_INVALID",
    });
    expect(await failureOf(() => openServed(master.url, { token: "a b" }))).toMatchObject({
      code: "FLEET_OPTION_INVALID",
    });
  });
});
