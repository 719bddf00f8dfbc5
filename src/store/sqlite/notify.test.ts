import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Database, openFile } from "./database.ts";
import { createNotifier, type Notifier } from "./notify.ts";

let folder: string;
let ours: Database;
let theirs: Database;
let notifier: Notifier | undefined;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "fleet-sqlite-"));
  ours = await openFile(join(folder, "fleet.db"), 1000);
  theirs = await openFile(join(folder, "fleet.db"), 1000);
  theirs.exec("CREATE TABLE t (x)");
});
afterEach(() => {
  notifier?.close();
  ours.close();
  theirs.close();
  rmSync(folder, { recursive: true, force: true });
});

const commit = (db: Database) => db.exec("INSERT INTO t VALUES (1)");

test("a commit of another connection is told, one of our own is not", async () => {
  const look = vi.fn(() => true);
  notifier = createNotifier(ours, () => {});
  notifier.onForeignCommit(look);
  const release = notifier.hold();
  commit(ours);
  commit(ours);
  commit(theirs);
  await vi.waitFor(() => expect(look).toHaveBeenCalled());
  commit(theirs);
  await vi.waitFor(() => expect(look).toHaveBeenCalledTimes(2));
  release();
});

test("where the log cannot be watched, it is polled, and that is said", async () => {
  const look = vi.fn(() => true);
  const log = vi.fn();
  const path = join(folder, "not-there", "fleet.db");
  notifier = createNotifier({ ...ours, path }, log);
  notifier.onForeignCommit(look);
  notifier.hold();
  expect(log).toHaveBeenCalledWith("warn", expect.stringContaining("polled"), expect.anything());
  commit(theirs);
  await vi.waitFor(() => expect(look).toHaveBeenCalledTimes(1));
});

test("nobody is told once nothing is held", async () => {
  const look = vi.fn(() => true);
  notifier = createNotifier(ours, () => {});
  notifier.onForeignCommit(look);
  notifier.hold()();
  commit(theirs);
  const again = notifier.hold();
  commit(theirs);
  await vi.waitFor(() => expect(look).toHaveBeenCalled());
  expect(look).toHaveBeenCalledTimes(1);
  again();
});
