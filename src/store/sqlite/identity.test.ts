import { mkdtempSync, renameSync, rmSync } from "node:fs";
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

test("once the file was deleted, every call fails and names it", async () => {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix);
  await expect
    .poll(failure, { timeout: 5000, interval: 50 })
    .toMatchObject({ code: "FLEET_STORE_UNAVAILABLE", retryable: false });
  expect(messageOf(await failure())).toContain(path);
  expect(messageOf(await failure())).toContain("deleted");
  await expect(store.streams.list()).rejects.toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" });
});

test("once the file was replaced, nothing more is written, and the new file is left alone", async () => {
  renameSync(path, `${path}.old`);
  for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix);
  const replacement = await openSqliteStore(`sqlite:${path}`);
  await declare(replacement, "theirs");
  await expect
    .poll(failure, { timeout: 5000, interval: 50 })
    .toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" });
  expect(messageOf(await failure())).toContain("replaced");
  await store.close();
  expect(await replacement.streams.list()).toEqual(["theirs"]);
  await declare(replacement, "more");
  await replacement.close();
  const again = await openSqliteStore(`sqlite:${path}`);
  expect(await again.streams.list()).toEqual(["more", "theirs"]);
  await again.close();
});
