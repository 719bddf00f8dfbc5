// Short settings; part of `npm test`. A store that is found by way of sentinels: what it takes, and what it says when it cannot.
import { inspect } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { failureOf, until } from "../src/store/conformance/harness.ts";
import { declared, payloads } from "../src/store/conformance/producer.ts";
import { openStore } from "../src/store/open.ts";
import type { Store, StoreOptions } from "../src/store/store.ts";
import {
  freePort,
  type RedisServer,
  type SentinelGroup,
  startRedis,
  startSentinels,
} from "./support/redis.ts";

const PASSWORD = "S3CRET-server";
const SENTINEL_PASSWORD = "S3CRET-sentinel";

let group: SentinelGroup;
const opened: Store[] = [];
const lines: string[] = [];

beforeAll(async () => {
  group = await startSentinels({ sentinels: 2, password: PASSWORD, sentinelPassword: SENTINEL_PASSWORD });
});
afterAll(() => group.stop());
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
});

async function open(url: string, options: StoreOptions = {}): Promise<Store> {
  const log: StoreOptions["log"] = (level, message, fields) =>
    lines.push(inspect({ level, message, fields }));
  const store = await openStore(url, { log, ...options });
  opened.push(store);
  return store;
}

const host = (index: number) => `127.0.0.1:${group.sentinels[index]?.port}`;
const withPasswords = (hosts: string, name = "main") =>
  `redis+sentinel://:${PASSWORD}@${hosts}/${name}?sentinel_password=${SENTINEL_PASSWORD}`;

/** Fleet's connections to a server. */
async function namesOn(on: SentinelGroup, server: RedisServer): Promise<string[]> {
  const clients = await on.ask<string>(server, "CLIENT", "LIST");
  return [...clients.matchAll(/ name=(fleet\S*)/g)].map(([, name]) => String(name)).toSorted();
}

it("opens on the master, in the database of the address", async () => {
  const [master] = group.servers;
  const store = await open(group.url.replace("/main?", "/main/3?"), { namespace: "n" });
  await (await declared(store, "t")).push("here");
  const other = await open(`${group.url}&db=3`, { namespace: "n" });
  expect(payloads(await other.streams.pop({ stream: "t", n: 9 }))).toEqual(["here"]);
  expect(await group.ask<string>(master, "INFO", "keyspace")).toMatch(/db3:/);
  expect(await group.ask<string>(master, "INFO", "keyspace")).not.toMatch(/db0:/);
});

it("tries the sentinels in turn: one that is down and one that never answers do not matter", async () => {
  const [, silent] = group.sentinels;
  await silent?.kill("SIGSTOP");
  try {
    const store = await open(withPasswords(`127.0.0.1:${await freePort()},${host(1)},${host(0)}`));
    expect(await store.now()).toBeGreaterThan(0);
  } finally {
    await silent?.kill("SIGCONT");
  }
});

describe("says what is wrong", () => {
  const failure = async (url: string, options?: StoreOptions) => {
    const error = await failureOf(() => open(url, options));
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain("S3CRET");
    return error as Error;
  };

  it("no sentinel can be reached: each was tried", async () => {
    const ports = [await freePort(), await freePort()];
    const error = await failure(withPasswords(ports.map((port) => `127.0.0.1:${port}`).join(",")), {
      deadlineSeconds: 0.5,
    });
    expect(error).toMatchObject({ code: "FLEET_STORE_UNAVAILABLE", retryable: true });
    for (const port of ports)
      expect(error.message).toMatch(new RegExp(`127\\.0\\.0\\.1:${port}: .*ECONNREFUSED`));
  });

  it("sentinels that accept and never answer: each was tried within the deadline", async () => {
    for (const sentinel of group.sentinels) await sentinel.kill("SIGSTOP");
    try {
      const started = performance.now();
      const error = await failure(group.url, { deadlineSeconds: 0.6 });
      expect(performance.now() - started).toBeLessThan(2000);
      expect(error).toMatchObject({ code: "FLEET_STORE_UNAVAILABLE", retryable: true });
      for (const at of [host(0), host(1)]) expect(error.message).toContain(`${at}: `);
    } finally {
      for (const sentinel of group.sentinels) await sentinel.kill("SIGCONT");
    }
  });

  it("the master's name is unknown: at once, with the known ones", async () => {
    const error = await failure(withPasswords(`${host(0)},${host(1)}`, "mian"), { deadlineSeconds: 20 });
    expect(error).toMatchObject({ code: "FLEET_STORE_URL_INVALID", retryable: false });
    expect(error.message).toMatch(/no master "mian", but "main": correct the name in the address/);
  });

  it("the sentinels want a password: at once, with the way to give it", async () => {
    for (const query of ["", "?sentinel_password=S3CRET-wrong"]) {
      const error = await failure(`redis+sentinel://:${PASSWORD}@${host(0)}/main${query}`, {
        deadlineSeconds: 20,
      });
      expect(error).toMatchObject({ code: "FLEET_STORE_AUTH" });
      expect(error.message).toContain("?sentinel_username=…&sentinel_password=…");
    }
  });

  it("the master wants another password", async () => {
    const error = await failure(group.url.replace(PASSWORD, "S3CRET-wrong"), { deadlineSeconds: 20 });
    expect(error).toMatchObject({ code: "FLEET_STORE_AUTH" });
    expect(error.message).not.toContain("sentinel_password");
  });

  it("what answers is a server, or a sentinel where a server was named", async () => {
    const [master] = group.servers;
    const server = await failure(
      `redis+sentinel://127.0.0.1:${master.port}/main?sentinel_password=${PASSWORD}`,
    );
    expect(server).toMatchObject({ code: "FLEET_STORE_INCOMPATIBLE" });
    expect(server.message).toMatch(/not a sentinel: use redis:/);
    const sentinel = await failure(`redis://:${SENTINEL_PASSWORD}@${host(0)}`);
    expect(sentinel).toMatchObject({ code: "FLEET_STORE_INCOMPATIBLE" });
    expect(sentinel.message).toMatch(/redis\+sentinel:\/\/host:port\/master-name/);
  });
});

describe("with a sentinel that is told what to say", () => {
  let own: SentinelGroup;
  let other: RedisServer;

  beforeAll(async () => {
    [own, other] = await Promise.all([startSentinels({ sentinels: 1 }), startRedis()]);
  });
  afterAll(() => Promise.all([own.stop(), other.stop()]));

  /** Without a `+switch-master`. */
  const name = async ({ port }: RedisServer) => {
    const sentinel = own.sentinels[0] as RedisServer;
    await own.ask(sentinel, "SENTINEL", "REMOVE", "main");
    await own.ask(sentinel, "SENTINEL", "MONITOR", "main", "127.0.0.1", String(port), "1");
  };

  it("goes where the master is by the sentinel's word, also when the hint was lost", async () => {
    const store = await open(own.url);
    const watching = store.streams.watch({ stream: "t" }, () => undefined);
    await watching.ready;
    expect(await namesOn(own, own.servers[0])).toEqual(["fleet", "fleet-subscriber"]);
    await name(other);
    await until("both connections have moved", async () => (await namesOn(own, other)).length === 2);
    expect(await namesOn(own, own.servers[0])).toEqual([]);
    await (await declared(store, "t")).push("there");
    expect(await own.ask<number>(other, "DBSIZE")).toBeGreaterThan(0);
    expect(lines.join("\n")).toContain(`is 127.0.0.1:${other.port} now`);
    // However often the store has connected, it watches over one connection.
    const sentinel = own.sentinels[0] as RedisServer;
    expect(await namesOn(own, sentinel)).toEqual(["fleet-sentinel"]);
    await store.close();
    await until("nobody watches", async () => (await namesOn(own, sentinel)).length === 0);
  });

  it("keeps what a master refuses that has become a replica, until there is a master again", async () => {
    const store = await open(own.url, { deadlineSeconds: 20 });
    const producer = await declared(store, "kept");
    const nobody = await freePort();
    await own.ask(other, "REPLICAOF", "127.0.0.1", String(nobody));
    const pushed = producer.push(1);
    await until("the connection is given up", async () => (await namesOn(own, other)).length === 0);
    expect(lines.join("\n")).toContain("READONLY");
    await own.ask(other, "REPLICAOF", "NO", "ONE");
    expect(await pushed).toMatchObject({ outcome: "pushed", length: 1 });
  });

  it("does not take a replica for the master", async () => {
    const [, replica] = own.servers;
    await name(replica);
    const error = await failureOf(() => open(own.url, { deadlineSeconds: 0.5 }));
    expect(error).toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" });
    expect(String(error)).toContain(`name 127.0.0.1:${replica.port}, which is no master`);
    const waiting = open(own.url, { deadlineSeconds: 10 });
    await own.ask(replica, "REPLICAOF", "NO", "ONE");
    expect(await (await waiting).now()).toBeGreaterThan(0);
  });
});

it("closes without leaving a connection behind", async () => {
  const [master] = group.servers;
  const store = await open(group.url);
  const watching = store.streams.watch({ stream: "t" }, () => undefined);
  await watching.ready;
  expect(await namesOn(group, master)).toEqual(["fleet", "fleet-subscriber"]);
  await store.close();
  await until("all are gone", async () => (await namesOn(group, master)).length === 0);
});

it("goes on working without any sentinel, and says so; nothing that it says shows a password", async () => {
  const store = await open(group.url, { deadlineSeconds: 1 });
  await Promise.all(group.sentinels.map((sentinel) => sentinel.kill()));
  await until("it is said", () => /no sentinel .* can be watched/.test(lines.join("\n")));
  expect(await store.now()).toBeGreaterThan(0);
  await group.servers[0].kill();
  await until("the loss is said", () => /lost the connection/.test(lines.join("\n")));
  const error = await failureOf(() => store.now());
  expect(error).toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" });
  for (const at of [host(0), host(1)]) expect(String(error)).toContain(`${at}: `);
  for (const text of [inspect(error, { depth: 10, showHidden: true }), ...lines])
    expect(text).not.toContain("S3CRET");
});
