// What only this back end has; the port's guarantees are in the conformance suite.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { EntryTemplate } from "../../protocol/envelope.ts";
import type { Store } from "../store.ts";
import { type Connection, loadDriver } from "./driver.ts";
import { openSqliteStore } from "./store.ts";
import { DROP_AT_ONCE } from "./stream-cache.ts";

let folder: string;
let store: Store;
/** Looks into the file past the store. */
let raw: Connection;
let now = 1_781_234_567_890;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "fleet-sqlite-"));
  const path = join(folder, "fleet.db");
  store = await openSqliteStore(`sqlite:${path}`, { frozenNow: () => now });
  raw = (await loadDriver()).open(path);
  await declare({});
});
afterEach(async () => {
  raw.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const declare = (changes: { maxLength?: number }) =>
  store.streams.declare({
    stream: "s",
    bounds: { maxLength: 50_000, ttlMs: 1000, maxPayloadBytes: 1000, ...changes },
    as: "owner",
  });
const entry = (payload: number | string): EntryTemplate => ({
  id: "i",
  head: `{"ts":`,
  tail: `,"payload":${payload}}`,
});
const entries = (count: number) => Array.from({ length: count }, (_, i) => entry(i));
let seq = 0;
const push = (list: EntryTemplate[]) =>
  store.streams.push({ stream: "s", entries: list, op: { producer: "p", seq: ++seq } });
const rowsInTable = () => raw.prepare("SELECT count(*) FROM stream_entries").get<[number]>()?.[0];
const stats = () => store.streams.stats({ stream: "s" });

test("a great many entries that expire at once go in portions, and none of them is ever seen", async () => {
  await push(entries(20_000));
  now += 1000;
  expect(await push(entries(1))).toMatchObject({ length: 1, expired: 20_000 });
  expect(rowsInTable()).toBe(20_001 - DROP_AT_ONCE);
  expect(await store.streams.length({ stream: "s" })).toBe(1);
  expect(await store.streams.peek({ stream: "s", n: 10 })).toHaveLength(1);
  expect(await store.streams.sweep({ stream: "s" })).toEqual({ expired: 0 });
  expect(rowsInTable()).toBe(1);
  expect(await store.streams.pop({ stream: "s", n: 10 })).toHaveLength(1);
  expect(await stats()).toMatchObject({ length: 0, pushed: 20_001, popped: 1, expired: 20_000 });
});

test("sweep frees all that lies there expired, however much", async () => {
  await push(entries(10_000));
  now += 1000;
  expect(await store.streams.sweep({ stream: "s" })).toEqual({ expired: 10_000 });
  expect(rowsInTable()).toBe(0);
});

test("pops leave nothing behind in the table", async () => {
  await push(entries(15_000));
  expect(await store.streams.pop({ stream: "s", n: 14_999 })).toHaveLength(14_999);
  expect(rowsInTable()).toBe(1);
});

test("entries that are cut in the push that brings them never reach the table", async () => {
  await declare({ maxLength: 10 });
  expect(await push(entries(5000))).toMatchObject({ length: 10, trimmed: 4990 });
  expect(rowsInTable()).toBe(10);
});

test("sweep forgets producers not heard of for an hour, and no others", async () => {
  const producers = () => raw.prepare("SELECT producer FROM stream_ops").all().flat();
  await store.streams.push({ stream: "s", entries: entries(1), op: { producer: "old", seq: 1 } });
  now += 3_600_000;
  await push(entries(1));
  await store.streams.sweep({ stream: "s" });
  expect(producers()).toEqual(["old", "p"]);
  now += 1;
  await store.streams.sweep({ stream: "s" });
  expect(producers()).toEqual(["p"]);
});

test("a text with a NUL comes back byte for byte", async () => {
  await push([{ id: "i", head: `{"a\0ä":`, tail: `,"\0"}` }]);
  expect(await store.streams.pop({ stream: "s", n: 1 })).toEqual([`{"a\0ä":${now},"\0"}`]);
});
