// The ring behind the events; the port's guarantees are in the conformance suite.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { BusEvent } from "../../protocol/event.ts";
import type { Store } from "../store.ts";
import { type Connection, loadDriver } from "./driver.ts";
import { openSqliteStore } from "./store.ts";

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
