// Short (`npm test`): pools by REST on both stores, without a worker.
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { definePool } from "../src/contracts/pool.ts";
import { defineContinuous } from "../src/index.ts";
import type { Store } from "../src/store/store.ts";
import { PLACES } from "./support/places.ts";
import { publish, restOn, storeAt } from "./support/rest.ts";

const SESSIONS = definePool("sessions", {
  payload: z.object({ cookie: z.string() }),
  tags: z.object({ site: z.string(), tier: z.enum(["free", "pro"]).default("free") }),
});
const LOGIN = defineContinuous("login", { uses: { put: [SESSIONS] }, runSlot: async () => undefined });
const ITEMS = "/pools/sessions/items";
const CLAIM = "/pools/sessions/claim";
const payload = { cookie: "c" };

describe.each(PLACES)("on $name", (place) => {
  const setUp = async () => {
    const { store, another } = await storeAt(place);
    await publish(store, [LOGIN]);
    return { store, another, rest: restOn(store) };
  };
  const counts = (store: Store) => store.pools.count({ pool: "sessions", where: {} });
  const waiting = async (store: Store) => (await store.pools.stats({ pool: "sessions" }))?.waiting ?? [];

  it("puts items in as they were given, with the tags' defaults, and shows them", async () => {
    const { rest } = await setUp();
    const put = await rest.call("POST", ITEMS, { payload, tags: { site: "a" }, ttl_seconds: 60, id: "s1" });
    expect(put).toMatchObject({ status: 201, json: { id: "s1" } });
    expect(
      await rest.call("POST", ITEMS, { payload: { cookie: "other" }, tags: { site: "b" }, id: "s1" }),
    ).toMatchObject({ status: 201, json: { id: "s1" } });
    const { items } = await rest.client.listItems({ name: "sessions" });
    expect(items).toMatchObject([
      { id: "s1", state: "free", payload, tags: { site: "a", tier: "free" }, holder: null, retired: null },
    ]);
    expect((await rest.client.listPools()).items).toEqual([
      { name: "sessions", free: 1, held: 0, cooling: 0, retired: 0, waiting: 0 },
    ]);
  });

  it("checks payload and tags by what was published, and puts nothing that does not fit", async () => {
    const { store, rest } = await setUp();
    for (const [body, status, pointer] of [
      [{ payload: { cookie: 1 }, tags: { site: "a" } }, 422, "/payload/cookie"],
      [{ payload, tags: {} }, 422, "/tags/site"],
      [{ payload }, 422, "/tags/site"],
      [{ payload, tags: { site: "a", tier: "gold" } }, 422, "/tags/tier"],
      [{ payload, tags: { site: "a" }, ttl: 5 }, 422, "/ttl"],
      [{ tags: { site: "a" } }, 422, "/payload"],
      [{ payload: { cookie: "x".repeat(400_000) }, tags: { site: "a" } }, 413, "/payload"],
    ] as const) {
      const answer = await rest.call("POST", ITEMS, body);
      expect({ body, status: answer.status, errors: answer.json["errors"] }).toMatchObject({
        status,
        errors: [{ pointer }],
      });
    }
    expect(await store.pools.list()).toEqual([]);
  });

  it("claims an item for a while, extends it and gives it back", async () => {
    const { store, rest } = await setUp();
    await rest.call("POST", ITEMS, { payload, tags: { site: "a" }, id: "ü/s 1" });
    const { lease } = await rest.client.claimItem({
      name: "sessions",
      body: { where: { site: ["a", "b"] } },
    });
    expect(lease).toMatchObject({ id: "ü/s 1", payload, tags: { site: "a", tier: "free" }, uses: 1 });
    const token = lease?.token ?? "";
    expect((await rest.client.claimItem({ name: "sessions" })).lease).toBeNull();
    const [held] = (await rest.client.listItems({ name: "sessions", query: { state: "held" } })).items;
    expect(held?.holder).toMatchObject({ by: "API (admin)" });
    const { until } = await rest.client.extendClaim({ name: "sessions", token, body: { hold_seconds: 600 } });
    expect(until).toBeGreaterThan((lease?.until ?? 0) + 400_000);
    await rest.client.releaseClaim({ name: "sessions", token });
    expect(await counts(store)).toMatchObject({ free: 1, held: 0 });
  });

  it("refuses late holders and tokens that are none", async () => {
    const { rest } = await setUp();
    await rest.call("POST", ITEMS, { payload, tags: { site: "a" }, id: "s1" });
    const claim = async () => (await rest.client.claimItem({ name: "sessions" })).lease?.token ?? "";
    const late = await claim();
    await rest.client.releaseClaim({ name: "sessions", token: late });
    const present = await claim();
    for (const verb of ["extend", "release"]) {
      const steer = (token: string) => rest.call("POST", `/pools/sessions/claims/${token}/${verb}`);
      expect(await steer(late)).toMatchObject({ status: 409, json: { code: "FLEET_LEASE_LOST" } });
      // The same item in another spelling: "czE" and "czF" are the same two bytes.
      expect(present.endsWith(".czE")).toBe(true);
      expect(await steer(present.replace(/E$/, "F"))).toMatchObject({ status: 400 });
      for (const none of ["x", present.split(".")[0] ?? "", `${present}=`, ".", `1.${"A".repeat(600)}`])
        expect((await steer(none)).status).toBeGreaterThanOrEqual(400);
      expect(await steer("x")).toMatchObject({ status: 400, json: { code: "FLEET_REQUEST_INVALID" } });
    }
    // Nothing of that has touched the present holder.
    await rest.client.releaseClaim({ name: "sessions", token: present });
  });

  it("gives to those who wait in the order in which they came", async () => {
    const { store, another, rest } = await setUp();
    await rest.call("POST", ITEMS, { payload, tags: { site: "a" }, id: "s1" });
    let token = (await rest.client.claimItem({ name: "sessions" })).lease?.token ?? "";
    const masters = [rest, restOn(await another()), rest];
    const order: number[] = [];
    const lines: Promise<void>[] = [];
    for (const [at, master] of masters.entries()) {
      const claim = master.client.claimItem({ name: "sessions", body: { wait_seconds: 60 } });
      lines.push(
        claim.then(async ({ lease }) => {
          order.push(at);
          token = lease?.token ?? "";
          await rest.client.releaseClaim({ name: "sessions", token });
        }),
      );
      await vi.waitFor(async () => expect(await waiting(store)).toHaveLength(at + 1));
    }
    await rest.client.releaseClaim({ name: "sessions", token });
    await Promise.all(lines);
    expect(order).toEqual([0, 1, 2]);
  });

  it("ends the wait of a caller that has gone, and keeps nothing that was granted to it", async () => {
    const { store, rest } = await setUp();
    await rest.call("POST", ITEMS, { payload, tags: { site: "a" }, id: "s1" });
    const { lease } = await rest.client.claimItem({ name: "sessions" });
    const gone = new AbortController();
    const left = rest.call("POST", CLAIM, { wait_seconds: 60 }, { signal: gone.signal });
    await vi.waitFor(async () => expect(await waiting(store)).toHaveLength(1));
    gone.abort();
    expect((await left).json).toEqual({ lease: null });
    await vi.waitFor(async () => expect(await waiting(store)).toHaveLength(0));
    await rest.client.releaseClaim({ name: "sessions", token: lease?.token ?? "" });
    expect(await counts(store)).toMatchObject({ free: 1, held: 0 });
  });

  it("gives back what was granted while the caller went", async () => {
    const { store } = await setUp();
    const gone = new AbortController();
    const rest = restOn({
      ...store,
      queues: store.queues,
      pools: new Proxy(store.pools, {
        get: (pools, name) =>
          name === "claim"
            ? async (args: Parameters<typeof pools.claim>[0]) => {
                const answer = await pools.claim(args);
                gone.abort();
                return answer;
              }
            : Reflect.get(pools, name),
      }),
    });
    await rest.call("POST", ITEMS, { payload, tags: { site: "a" }, id: "s1" });
    const answer = await rest.call("POST", CLAIM, {}, { signal: gone.signal });
    expect(answer.json).toEqual({ lease: null });
    expect((await store.pools.stats({ pool: "sessions" }))?.totals).toMatchObject({
      claimed: 1,
      released: 1,
    });
  });

  it("ends all waits with the master", async () => {
    const { store, rest } = await setUp();
    const waits = rest.call("POST", CLAIM, { wait_seconds: 60 });
    await vi.waitFor(async () => expect(await waiting(store)).toHaveLength(1));
    await rest.stop();
    expect((await waits).json).toEqual({ lease: null });
    expect(await waiting(store)).toEqual([]);
  });

  it("keeps a claim when its master has ended: another one releases it", async () => {
    const { store, another, rest } = await setUp();
    await rest.call("POST", ITEMS, { payload, tags: { site: "a" }, id: "s1" });
    const { lease } = await rest.client.claimItem({ name: "sessions", body: { hold_seconds: 600 } });
    await rest.stop();
    await delay(50);
    expect(await counts(store)).toMatchObject({ held: 1 });
    const other = restOn(await another());
    await other.client.releaseClaim({ name: "sessions", token: lease?.token ?? "" });
    expect(await counts(store)).toMatchObject({ free: 1, held: 0 });
  });

  it("pages through all states, each item once, and removes one", async () => {
    const { rest } = await setUp();
    for (const id of ["a", "b", "c", "d", "e"])
      await rest.call("POST", ITEMS, { payload, tags: { site: id }, id });
    await rest.client.claimItem({ name: "sessions", body: { where: { site: "c" } } });
    const seen: string[] = [];
    let cursor: string | null | undefined;
    do {
      const page = await rest.client.listItems({
        name: "sessions",
        query: { limit: 2, ...(cursor === undefined || cursor === null ? {} : { cursor }) },
      });
      seen.push(...page.items.map(({ id, state }) => `${id} ${state}`));
      cursor = page.next_cursor;
    } while (cursor !== null);
    expect(seen[0]).toBe("c held");
    expect(seen.toSorted()).toEqual(["a free", "b free", "c held", "d free", "e free"]);
    for (const cursor of ["nonsense", "free.nonsense", "free", "lost.1"])
      expect(await rest.call("GET", `${ITEMS}?cursor=${cursor}`)).toMatchObject({ status: 400 });
    expect(await rest.call("DELETE", `${ITEMS}/d`)).toMatchObject({ status: 204, text: "" });
    expect(await rest.call("DELETE", `${ITEMS}/d`)).toMatchObject({
      status: 404,
      json: { code: "FLEET_NOT_FOUND" },
    });
  });

  it("knows no pool that is not there, and no tag that is none", async () => {
    const { rest } = await setUp();
    await rest.call("POST", ITEMS, { payload, tags: { site: "a" } });
    for (const [method, path, body] of [
      ["GET", "/pools/session/items", undefined],
      ["POST", "/pools/session/items", { payload }],
      ["DELETE", "/pools/session/items/x", undefined],
      ["POST", "/pools/session/claim", {}],
      ["POST", "/pools/session/claims/1.YQ/extend", {}],
      ["POST", "/pools/session/claims/1.YQ/release", undefined],
    ] as const) {
      const answer = await rest.call(method, path, body);
      expect({ path, status: answer.status }).toEqual({ path, status: 404 });
      expect(answer.json["detail"]).toContain('did you mean "sessions"?');
    }
    const tag = await rest.call("POST", CLAIM, { where: { sight: "a" } });
    expect(tag).toMatchObject({ status: 422, json: { errors: [{ pointer: "/where" }] } });
  });
});
