// Short settings; part of `npm test`. Several processes on one SQLite file (field case 35), and what a kill leaves behind.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openSqliteStore } from "../src/store/sqlite/store.ts";
import type { Store } from "../src/store/store.ts";
import { type Children, prepareChildren } from "./support/children.ts";
import type { HammerMessage } from "./support/children/sqlite-hammer.ts";
import type { WriterMessage } from "./support/children/sqlite-writer.ts";

const PROCESSES = 4;
const FOR_MS = 5000;
const BOUNDS = { maxLength: 1_000_000, ttlMs: 3_600_000, maxPayloadBytes: 262_144 };

let children: Children;
let folder: string;
let url: string;
let store: Store | undefined;

beforeAll(async () => {
  children = await prepareChildren();
});
afterAll(() => children.dispose());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fleet-sqlite-"));
  url = `sqlite:${join(folder, "fleet.db")}`;
});
afterEach(async () => {
  await store?.close();
  store = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const isOpened = (message: HammerMessage): message is { opened: string } => "opened" in message;
const isDone = (message: HammerMessage): message is Exclude<HammerMessage, { opened: string }> =>
  "popped" in message;
const percentile = (values: number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * share)] ?? 0;

describe("four processes on one file", () => {
  test(
    "no call is refused as busy, no entry comes twice or is lost, no slot is held twice, event loops stay free",
    { timeout: 60_000 },
    async () => {
      const hammers = Array.from({ length: PROCESSES }, (_, i) =>
        children.start<HammerMessage>("sqlite-hammer", { url, name: `p${i}`, forMs: FOR_MS }),
      );
      // They open, and so create, the file at the same time.
      const opened = await Promise.all(hammers.map((hammer) => hammer.next(isOpened)));
      expect(new Set(opened.map((message) => message.opened)).size).toBe(1);

      store = await openSqliteStore(url);
      await store.streams.declare({ stream: "s", bounds: BOUNDS, as: "owner" });
      // The same work with a store of its own tells what this machine's load costs beside any contention.
      const alone = children.start<HammerMessage>("sqlite-hammer", {
        url: "sqlite::memory:",
        name: "alone",
        forMs: FOR_MS,
      });
      await alone.next(isOpened);
      for (const hammer of [...hammers, alone]) hammer.send({ go: true });
      const results = await Promise.all(hammers.map((hammer) => hammer.next(isDone)));
      const { lagMs: ownLag } = await alone.next(isDone);

      expect(results.flatMap(({ errors }) => errors)).toEqual([]);
      const left = await store.streams.pop({ stream: "s", n: 1_000_000 });
      const rest = left.map((raw) => (JSON.parse(raw) as { payload: string }).payload);
      const popped = [...results.flatMap((result) => result.popped), ...rest];
      const pushed = results.flatMap((result, p) =>
        Array.from({ length: result.pushed }, (_, i) => `p${p}:${i + 1}`),
      );
      expect(pushed.length).toBeGreaterThan(PROCESSES * 100);
      expect(popped.toSorted()).toEqual(pushed.toSorted());

      const claims = results.flatMap((result) => result.claimed);
      expect(results.every((result) => result.claimed.length > 0)).toBe(true);
      expect(new Set(claims).size).toBe(claims.length);

      const bound = 50 + 2 * percentile(ownLag, 0.99);
      for (const { lagMs } of results) expect(percentile(lagMs, 0.99)).toBeLessThan(bound);
    },
  );
});

test(
  "a process killed while it writes leaves all that it had been told was written",
  { timeout: 60_000 },
  async () => {
    store = await openSqliteStore(url);
    await store.streams.declare({ stream: "s", bounds: BOUNDS, as: "owner" });
    for (let round = 1; round <= 3; round++) {
      const writer = children.start<WriterMessage>("sqlite-writer", { url, producer: `w${round}` });
      await writer.next((message): message is WriterMessage => message.acknowledged >= 100 * round);
      writer.kill("SIGKILL");
      await writer.ended;
      const acknowledged = writer.messages.at(-1)?.acknowledged ?? 0;

      const entries = await store.streams.pop({ stream: "s", n: 1_000_000 });
      const payloads = entries.map((raw) => (JSON.parse(raw) as { payload: number }).payload);
      // The last one may have been written without the news of it getting out.
      expect(payloads.length).toBeGreaterThanOrEqual(acknowledged);
      expect(payloads).toEqual(payloads.map((_, i) => i + 1));
    }
  },
);

test("the write-ahead log stays bounded under load and is cut when idle", { timeout: 60_000 }, async () => {
  store = await openSqliteStore(url);
  const reader = await openSqliteStore(url);
  await store.streams.declare({ stream: "s", bounds: { ...BOUNDS, maxLength: 100 }, as: "owner" });
  const logSize = () => statSync(join(folder, "fleet.db-wal")).size;
  const tail = `,"payload":"${"x".repeat(50_000)}"}`;
  let largest = 0;
  let written = 0;
  for (let seq = 1; written < 150 * 1024 * 1024; seq++) {
    const entries = Array.from({ length: 20 }, (_, i) => ({ id: `${seq}-${i}`, head: `{"ts":`, tail }));
    await store.streams.push({ stream: "s", entries, op: { producer: "p", seq } });
    await reader.streams.length({ stream: "s" });
    written += 20 * tail.length;
    largest = Math.max(largest, logSize());
  }
  expect(largest).toBeGreaterThan(4 * 1024 * 1024);
  expect(largest).toBeLessThan(100 * 1024 * 1024);
  const size = () => statSync(join(folder, "fleet.db")).size;
  expect(size()).toBeLessThan(100 * 1024 * 1024);
  await expect.poll(logSize, { timeout: 10_000, interval: 50 }).toBeLessThan(4 * 1024 * 1024);
  await reader.close();
});
