// The ring behind the events; the port's guarantees are in the conformance suite.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { BusEvent } from "../../protocol/event.ts";
import type { Store } from "../store.ts";
import { openMemory } from "./database.ts";
import { type Connection, loadDriver } from "./driver.ts";
import { createEvents } from "./events.ts";
import { createNotifier } from "./notify.ts";
import { openSqliteStore } from "./store.ts";
import { createWriter } from "./writer.ts";

let folder: string;
let store: Store;
let raw: Connection;
let now = 1_781_234_567_890;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "fleet-sqlite-"));
  const path = join(folder, "fleet.db");
  store = await openSqliteStore(`sqlite:${path}`, { frozenNow: () => now });
  raw = (await loadDriver()).open(path);
});
afterEach(async () => {
  raw.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const publish = (payload: unknown) =>
  store.events.publish({ topic: "t", source: "s", payload: JSON.stringify(payload) });
const seqsInRing = () => raw.prepare("SELECT seq FROM events ORDER BY id").all<[number]>().flat();

test("the ring keeps the newest 10 000", async () => {
  await Promise.all(Array.from({ length: 10_050 }, (_, i) => publish(i)));
  const kept = seqsInRing();
  expect(kept).toHaveLength(10_000);
  expect(kept.at(-1)).toBe(10_050);
});

test("the ring keeps nothing older than a minute", async () => {
  await publish(1);
  now += 30_000;
  await publish(2);
  now += 30_000;
  await publish(3);
  expect(seqsInRing()).toEqual([2, 3]);
  now += 60_000;
  expect(await publish(4)).toEqual({ seq: 4, ts: now });
  expect(seqsInRing()).toEqual([4]);
});

test("the ring is bounded in size too", async () => {
  const large = "x".repeat(64 * 1024 - 2);
  await Promise.all(Array.from({ length: 600 }, () => publish(large)));
  expect(seqsInRing()).toHaveLength(512);
  expect(seqsInRing().at(-1)).toBe(600);
});

test("a subscriber that throws, or a payload that is no JSON, harms no other", async () => {
  const got: BusEvent[] = [];
  const bad = store.events.subscribe({ pattern: "t" }, () => {
    throw new Error("bad subscriber");
  });
  const good = store.events.subscribe({ pattern: "t" }, (event) => got.push(event));
  await Promise.all([bad.ready, good.ready]);
  await store.events.publish({ topic: "t", source: "s", payload: "{" });
  await publish({ a: 1 });
  await vi.waitFor(() => expect(got).toMatchObject([{ seq: 2, payload: { a: 1 } }]));
  await Promise.all([bad.close(), good.close()]);
});

const topics = (count: number) => Array.from({ length: count }, (_, i) => `t${i}`);
const publishTo = (names: readonly string[]) =>
  store.events.publishMany({
    events: names.map((topic) => ({ topic, source: "s", payload: "0" })),
  });

test("what is published while many baselines are read is behind them", async () => {
  const names = topics(2500).toSorted();
  await publishTo(names);
  const watch = store.events.subscribe({ pattern: "t*" }, () => undefined);
  await watch.ready;
  const last = names.at(-1) as string;
  let read = false;
  void watch.baselines.then(() => (read = true));
  expect(await publishTo([last, "t-new"])).toMatchObject([{ seq: 2 }, { seq: 1 }]);
  // Else nothing would have been published meanwhile.
  expect(read).toBe(false);
  const baselines = await watch.baselines;
  expect([baselines.get(last), baselines.get("t-new") ?? 0]).toEqual([1, 0]);
  expect(baselines.size).toBeGreaterThanOrEqual(2500);
  await watch.close();
});

test("topics are forgotten in steps, between which others' calls come in", async () => {
  await publishTo(topics(4500));
  now += 1000;
  const sweep = store.events.sweep({ prefix: "", silentMs: 1000 });
  await store.now();
  const [left] = raw.prepare("SELECT count(*) FROM topics").get<[number]>() as [number];
  expect(left).toBeGreaterThan(0);
  expect(await sweep).toEqual({ forgotten: 4500 });
});

test("no statement walks through all topics", async () => {
  const inner = await openMemory();
  const ran = new Set<string>();
  const db = {
    ...inner,
    sql: (text: string) => {
      ran.add(text);
      return inner.sql(text);
    },
  };
  const writer = createWriter(db, { deadlineMs: 10_000 });
  const notifier = createNotifier(db, () => {});
  const events = createEvents({ db, ns: "", fleetId: "f", clock: () => now, writer, notifier });
  const names = topics(1500);
  await events.publishMany({ events: names.map((topic) => ({ topic, source: "s", payload: "0" })) });
  for (const pattern of ["t", "t*", "*"]) {
    const watch = events.subscribe({ pattern }, () => undefined);
    await watch.baselines;
    await watch.close();
  }
  now += 1000;
  for (const prefix of ["t1", ""]) await events.sweep({ prefix, silentMs: 1000 });
  const plans = [...ran]
    .filter((sql) => /\b(FROM|INTO) topics\b/.test(sql) && !sql.startsWith("INSERT"))
    .map((sql) => {
      const steps = inner.sql(`EXPLAIN QUERY PLAN ${sql}`).all<[number, number, number, string]>();
      return { sql, plan: steps.map(([, , , step]) => step).join("; ") };
    });
  expect(plans).toHaveLength(6);
  expect(plans.filter(({ plan }) => /SCAN|TEMP B-TREE/.test(plan))).toEqual([]);
  for (const { sql, plan } of plans.filter((one) => one.sql.includes("at <= ?")))
    expect([sql, plan]).toEqual([
      sql,
      expect.stringMatching(/topics_at \(ns=\? AND at<\?\)|\(ns=\? AND topic>\? AND topic<\?\)/),
    ]);
  await writer.close();
  notifier.close();
  inner.close();
});
