// `fleet pool` and `fleet event` by the built command. `npm test`: on SQLite; `npm run soak`: on both stores.
import { randomUUID } from "node:crypto";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { defineContinuous, isAutomation } from "../src/automation/definition.ts";
import { manifestOf } from "../src/automation/manifest.ts";
import { definePool } from "../src/contracts/pool.ts";
import { defineTopic } from "../src/contracts/topic.ts";
import { SILENT } from "../src/internal/log.ts";
import { eventBus } from "../src/primitives/events.ts";
import { Pools } from "../src/primitives/pools.ts";
import type { Store } from "../src/store/store.ts";
import { makeProject, runFleet, startFleet } from "./support/cli.ts";
import { openPlace, placesFor } from "./support/places.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 90_000 });

const SESSIONS = definePool("sessions", {
  payload: z.object({ cookie: z.string() }),
  tags: z.object({ site: z.string(), tier: z.string().default("free") }),
  maxUses: 7,
});
const STARTED = defineTopic("harvest.started", z.object({ site: z.string() }));

/** What a worker whose automation declares its use of both would have published. */
async function publish(store: Store): Promise<void> {
  const automation: unknown = defineContinuous("user", {
    uses: { claim: [SESSIONS], publish: [STARTED] },
    runSlot: async () => {},
  });
  if (!isAutomation(automation)) throw new Error("no automation");
  const worker = {
    id: "w1",
    incarnation: randomUUID(),
    host: "h",
    pid: 1,
    version: "0",
    startedAt: Date.now(),
    capacity: 1,
    labels: {},
    automations: ["user"],
    draining: false,
  };
  await store.registry.register({ worker, manifests: [manifestOf(automation, "v1")], ttlMs: 600_000 });
}

describe.each(placesFor("a SQLite file"))("on $name", ({ at }) => {
  const setUp = async () => {
    const cwd = makeProject({});
    const place = at(cwd);
    const store = await openPlace(place);
    onTestFinished(() => store.close());
    await publish(store);
    const fleet = (...args: string[]) => runFleet([...args, ...place.flags], { cwd });
    const json = async <T = Record<string, unknown>[]>(...args: string[]) => {
      const { code, stdout, stderr } = await fleet(...args, "--json");
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      return JSON.parse(stdout) as T;
    };
    return { cwd, place, store, fleet, json };
  };

  test("items are put, shown, claimed, released and retired", async () => {
    const { store, fleet, json } = await setUp();
    const good = '{"cookie":"c"}';
    const wrong = await fleet("pool", "put", "sessions", good, '{"cookie":1}', "--tags", '{"site":"a"}');
    expect(wrong).toEqual({
      code: 2,
      stdout: "",
      stderr: 'fleet: pool "sessions": item 1: payload: cookie: must be string\n',
    });
    const untagged = await fleet("pool", "put", "sessions", good);
    expect(untagged).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("site: is missing") as string,
    });
    expect(await store.pools.list()).toEqual([]);

    const put = await json<{ ids: string[] }>(
      "pool",
      "put",
      "sessions",
      good,
      good,
      "--tags",
      '{"site":"a"}',
      "--ttl",
      "1h",
    );
    expect(put.ids).toHaveLength(2);
    const b1 = await fleet("pool", "put", "sessions", good, "--tags", '{"site":"b"}', "--id", "b1");
    expect(b1).toMatchObject({ code: 0, stdout: "b1\n" });
    expect(await json("pool", "ls")).toMatchObject([
      { name: "sessions", free: 3, held: 0, settings: { max_uses: 7 }, totals: { put: 3 } },
    ]);

    const [claimed] = await json<{ id: string; token: string; tags: object; payload: object }[]>(
      "pool",
      "claim",
      "sessions",
      "--where",
      "site=b",
      "--where",
      "site=c",
      "--hold",
      "10m",
    );
    expect(claimed).toMatchObject({ id: "b1", payload: { cookie: "c" }, tags: { site: "b", tier: "free" } });
    const shown = await fleet("pool", "items", "sessions", "--state", "held");
    expect(shown.stdout).toMatch(
      /b1 +held +site=b tier=free +1 +0 .* command line \(.*@.*\), for .*, 9 m \d+ s left/,
    );
    const none = await fleet("pool", "claim", "sessions", "--where", "site=b", "--json");
    expect(none.code).toBe(1);
    expect(JSON.parse(none.stderr)).toMatchObject({ code: "FLEET_NOTHING_FREE" });

    expect((await fleet("pool", "release", "sessions", "b1", claimed?.token ?? "")).stdout).toBe(
      "b1 is released\n",
    );
    const late = await fleet("pool", "release", "sessions", "b1", claimed?.token ?? "");
    expect(late).toMatchObject({ code: 1, stderr: expect.stringContaining("has ended") as string });
    expect((await fleet("pool", "retire", "sessions", "b1", "none", "--reason", "banned")).stdout).toBe(
      "b1 is retired\nnone is not there\n",
    );
    expect(await json("pool", "items", "sessions", "--state", "retired")).toMatchObject([
      { id: "b1", retired: { reason: "asked", note: "banned" } },
    ]);
    expect(await json("pool", "items", "sessions", "--where", "site=a")).toHaveLength(2);
  });

  test("shows who waits and since when", async () => {
    const { store, fleet } = await setUp();
    const pools = new Pools(store, { log: SILENT, by: "user/0 on w1" });
    const waiting = pools.handle(SESSIONS).claim({ waitSeconds: 60 });
    await expect.poll(async () => (await pools.handle(SESSIONS).stats())?.waiting.length).toBe(1);
    const { stdout } = await fleet("pool", "ls");
    expect(stdout).toMatch(/^POOL +FREE +HELD +COOLING +RETIRED +WAITING +FIRST\n/);
    expect(stdout).toMatch(/sessions +0 +0 +0 +0 +1 +user\/0 on w1, for \d/);
    await pools.close();
    expect(await waiting).toBeNull();
  });

  test("what nobody has published a schema for is only put unchecked; an unknown pool is named", async () => {
    const { store, fleet } = await setUp();
    const other = new Pools(store, { log: SILENT }).handle(definePool("other", { payload: z.unknown() }));
    await other.put({ payload: 1 });
    const unchecked = ["pool", "put", "other", "5", "--tags", '{"any":"thing"}'];
    expect(await fleet(...unchecked)).toMatchObject({ code: 2 });
    expect(await fleet(...unchecked, "--unchecked")).toMatchObject({ code: 0 });
    expect(await other.count()).toBe(2);
    const unknown = await fleet("pool", "items", "othr");
    expect(unknown).toMatchObject({
      code: 1,
      stderr: 'fleet: there is no pool "othr"; did you mean "other"?\n',
    });
    expect(await fleet("pool", "items", "other", "--where", "site")).toMatchObject({ code: 2 });
  });

  test("events are published, checked, and followed", async () => {
    const { cwd, place, store, fleet } = await setUp();
    const tail = startFleet(["event", "tail", "harvest.*", "other", "-n", "3", ...place.flags], { cwd });
    await tail.until(
      (text) => text.includes("listening to harvest.*") && text.includes("listening to other"),
    );
    const wrong = await fleet("event", "publish", "harvest.started", '{"site":5}');
    expect(wrong).toEqual({
      code: 2,
      stdout: "",
      stderr: 'fleet: event "harvest.started": site: must be string\n',
    });
    expect((await fleet("event", "publish", "fleet.slot.crashed", "{}")).code).toBe(2);
    expect((await fleet("event", "publish", "harvest.started", '{"site":"a"}')).code).toBe(0);
    const bus = eventBus({ store: store.events, source: "test" });
    await bus.publish("unheard", 1);
    await bus.publish("other", { n: 2 });
    await bus.publish("harvest.more", null);
    expect(await tail.ended).toBe(0);
    const seen = tail
      .stdout()
      .trim()
      .split("\n")
      .toSorted((a, b) => (a.slice(25) < b.slice(25) ? -1 : 1));
    expect(seen.map((line) => line.slice(25))).toEqual([
      "harvest.more #1 test null",
      expect.stringMatching(/^harvest\.started #1 cli:\S+ {"site":"a"}$/),
      'other #1 test {"n":2}',
    ]);
  });

  test("an event that several patterns match comes once, and counts once", async () => {
    const { cwd, place, store } = await setUp();
    const patterns = ["a.*", "a.b.*", "*.c"];
    const tail = startFleet(["event", "tail", ...patterns, "-n", "4", ...place.flags], { cwd });
    await tail.until((text) => patterns.every((pattern) => text.includes(`listening to ${pattern}\n`)));
    const bus = eventBus({ store: store.events, source: "test" });
    for (const topic of ["a.b.c", "a.x", "x.c", "a.b.c"]) await bus.publish(topic, null);
    expect(await tail.ended).toBe(0);
    const seen = tail.stdout().trim().split("\n");
    expect(seen.map((line) => line.slice(25)).toSorted()).toEqual([
      "a.b.c #1 test null",
      "a.b.c #2 test null",
      "a.x #1 test null",
      "x.c #1 test null",
    ]);
  });

  test("following events ends cleanly at Ctrl-C", async () => {
    const { cwd, place, store } = await setUp();
    const tail = startFleet(["event", "tail", "a.*", "a.b", "--json", ...place.flags], { cwd });
    const bus = eventBus({ store: store.events, source: "test" });
    // With --json it is not told when it listens, so it is told again.
    const again = setInterval(() => void bus.publish("a.b", 1), 100);
    try {
      await tail.until((text) => text.includes('"topic":"a.b"'));
    } finally {
      clearInterval(again);
    }
    tail.signal("SIGINT");
    expect(await tail.ended).toBe(0);
    expect(tail.stderr()).toBe("");
  });
});
