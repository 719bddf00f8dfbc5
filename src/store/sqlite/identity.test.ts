import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { messageOf } from "../../errors.ts";
import type { Store } from "../store.ts";
import { openSqliteStore } from "./store.ts";

let folder: string;
let path: string;
let store: Store;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "fleet-sqlite-"));
  path = join(folder, "fleet.db");
  store = await openSqliteStore(`sqlite:${path}`);
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const bounds = { maxLength: 10, ttlMs: 1000, maxPayloadBytes: 100 };
const declare = (to: Store, stream: string) => to.streams.declare({ stream, bounds, as: "owner" });
let made = 0;
/** What the next write fails with; undefined when it works. */
const failure = () =>
  declare(store, `s${++made}`).then(
    () => undefined,
    (error: unknown) => error,
  );

const remove = (suffixes = ["", "-wal", "-shm"]) => {
  for (const suffix of suffixes) rmSync(path + suffix);
};

test("once the file was deleted, every call fails and says so, until there is one again", async () => {
  await declare(store, "lost");
  remove();
  await expect
    .poll(failure, { timeout: 5000, interval: 50 })
    .toMatchObject({ code: "FLEET_STORE_UNAVAILABLE", retryable: true });
  expect(messageOf(await failure())).toContain(path);
  expect(messageOf(await failure())).toContain("deleted");
  await expect(store.streams.list()).rejects.toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" });
  // Nobody but who opens a store makes a file.
  expect(existsSync(path)).toBe(false);
  const other = await openSqliteStore(`sqlite:${path}`);
  await declare(other, "theirs");
  await expect.poll(failure, { timeout: 5000, interval: 50 }).toBeUndefined();
  expect(await store.streams.list()).toEqual([`s${made}`, "theirs"]);
  expect(await other.streams.list()).toEqual([`s${made}`, "theirs"]);
  await other.close();
});

test("a file that was put in the place of the open one is used from then on, and nothing of the old one goes into it", async () => {
  await declare(store, "old");
  const heard: string[] = [];
  const subscription = store.events.subscribe({ pattern: "a.*" }, ({ topic }) => heard.push(topic));
  await subscription.ready;
  for (let i = 0; i < 5; i++) await store.events.publish({ topic: "a.old", source: "s", payload: "1" });
  let hints = 0;
  const watch = store.registry.watch(() => (hints += 1));
  await watch.ready;
  await expect.poll(() => heard.length).toBe(5);
  renameSync(path, `${path}.old`);
  remove(["-wal", "-shm"]);
  const replacement = await openSqliteStore(`sqlite:${path}`);
  await declare(replacement, "theirs");
  await expect.poll(() => store.streams.list().catch(() => []), { timeout: 5000 }).toEqual(["theirs"]);
  // What others write there comes through: ids and revisions begin anew.
  hints = 0;
  await replacement.events.publish({ topic: "a.new", source: "s", payload: "1" });
  const desired = { slots: 1, config: {}, paused: false, generation: 1, deployed: {} };
  const changedBy = { slots: "deploy", config: "deploy" };
  await replacement.registry.putDesired({ name: "x", desired: { ...desired, changedBy }, expected: 0 });
  await expect.poll(() => heard.at(-1), { timeout: 5000 }).toBe("a.new");
  await expect.poll(() => hints, { timeout: 5000 }).toBeGreaterThan(0);
  await declare(store, "ours");
  await store.close();
  expect(await replacement.streams.list()).toEqual(["ours", "theirs"]);
  await replacement.close();
  const again = await openSqliteStore(`sqlite:${path}`);
  expect(await again.streams.list()).toEqual(["ours", "theirs"]);
  await again.close();
});

test("a file in its place that cannot be used is left as it is, and said; a usable one is taken", async () => {
  remove();
  const text = "no database at all, ".repeat(100);
  writeFileSync(path, text);
  await expect
    .poll(async () => messageOf(await failure()), { timeout: 5000, interval: 50 })
    .toMatch(/replaced.*cannot be used.*no SQLite database/);
  expect(readFileSync(path, "utf8")).toBe(text);
  rmSync(path);
  await (await openSqliteStore(`sqlite:${path}`)).close();
  await expect.poll(failure, { timeout: 5000, interval: 50 }).toBeUndefined();
});
