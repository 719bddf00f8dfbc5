// Soak: the URL monitor for FLEET_SOAK_MINUTES (default 20) on SQLite. Measurements keep coming, and no process grows.
import { cpSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { makeProject, startFleet } from "../support/cli.ts";
import { descendants } from "../support/processes.ts";

const EXAMPLE = fileURLToPath(new URL("../../examples/url-monitor", import.meta.url));
const MINUTES = Number(process.env.FLEET_SOAK_MINUTES ?? 20);
const INTERVAL_SECONDS = 0.2;
/** Growth of all processes together, after the first quarter, that is still no leak. */
const MAX_GROWTH = 1.3;

test("the URL monitor runs for long without growing or falling behind", async () => {
  const cwd = makeProject();
  cpSync(EXAMPLE, cwd, { recursive: true, filter: (path) => !/[\\/]\.fleet|urls\.txt$/.test(path) });
  const free = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => free.once("listening", done));
  const { port } = free.address() as AddressInfo;
  await new Promise((done) => free.close(done));

  const fleet = startFleet(["up", "--store", `sqlite:${join(cwd, "fleet.db")}`], {
    cwd,
    env: { URL_MONITOR_PORT: String(port), URL_MONITOR_INTERVAL_SECONDS: String(INTERVAL_SECONDS) },
  });
  const healthyLooks = () => fleet.stdout().split("/healthy\n").length - 1;
  await fleet.until((text) => text.includes("/healthy\n"), 60_000);

  const quarterMs = (MINUTES * 60_000) / 4;
  await delay(quarterMs);
  const [sizeBefore, looksBefore] = [kilobytes(fleet.pid), healthyLooks()];
  await delay(3 * quarterMs);
  const [sizeAfter, looksAfter] = [kilobytes(fleet.pid), healthyLooks()];
  console.log(`resident: ${sizeBefore} kB, then ${sizeAfter} kB; looks: ${looksBefore}, then ${looksAfter}`);

  const expected = (3 * quarterMs) / 1000 / INTERVAL_SECONDS;
  expect(looksAfter - looksBefore).toBeGreaterThan(0.8 * expected);
  expect(sizeAfter).toBeLessThan(MAX_GROWTH * sizeBefore);
  expect(fleet.stderr()).not.toMatch(/\b(error|warn)\b/);
  fleet.signal("SIGINT");
  expect(await fleet.ended).toBe(0);
});

/** Resident memory of a process and all below it. */
function kilobytes(pid: number): number {
  const pids = [pid, ...descendants(pid)].join(",");
  const rows = execFileSync("ps", ["-o", "rss=", "-p", pids], { encoding: "utf8" }).trim().split("\n");
  return rows.reduce((sum, row) => sum + Number(row), 0);
}
