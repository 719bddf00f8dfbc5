// Short: the host metrics of examples/, with the machine's own readings.
import { cpSync } from "node:fs";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { hostname, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { METRICS_OUT } from "../examples/host-metrics/contracts.ts";
import { openFleet } from "../src/automation/fleet.ts";
import { makeProject, startFleet } from "./support/cli.ts";

const EXAMPLE = fileURLToPath(new URL("../examples/host-metrics", import.meta.url));

function copyOfExample(): string {
  const dir = makeProject();
  cpSync(EXAMPLE, dir, { recursive: true, filter: (path) => !/[\\/]\.fleet/.test(path) });
  return dir;
}

test("readings are those of this machine", async () => {
  const cwd = copyOfExample();
  const store = `sqlite:${join(cwd, "fleet.db")}`;
  const running = startFleet(["up", "--only", "host-metrics", "--store", store], { cwd });
  await running.until((text) => text.includes("running host-metrics"));
  await using fleet = await openFleet({ store });
  const readings = [];
  for await (const reading of fleet.stream(METRICS_OUT)) {
    readings.push(reading);
    if (readings.length === 3) break;
  }
  for (const { host, at, cpu, memory, disk, network, missing } of readings) {
    expect(host).toBe(hostname());
    expect(Math.abs(Date.now() - at)).toBeLessThan(60_000);
    expect(cpu?.usedPercent).toBeGreaterThanOrEqual(0);
    expect(cpu?.cores).toBeGreaterThan(0);
    expect(memory?.totalBytes).toBe(totalmem());
    expect(memory?.usedPercent).toBeGreaterThan(0);
    expect(memory?.usedPercent).toBeLessThan(100);
    expect(disk?.totalBytes).toBeGreaterThan(1e6);
    // What a system does not tell is named, and nothing is made up for it.
    expect(network === null).toBe(missing.some((part) => part.startsWith("network: ")));
    expect(network === null).toBe(process.platform !== "linux");
  }
  // The machine works while this test runs, so not all readings can be of an idle one.
  expect(Math.max(...readings.map(({ cpu }) => cpu?.usedPercent ?? 0))).toBeGreaterThan(0);
  running.signal("SIGINT");
  expect(await running.ended).toBe(0);
}, 60_000);

test("a low limit raises an alert, which automations and scripts outside hear", async () => {
  const cwd = copyOfExample();
  const store = `sqlite:${join(cwd, "fleet.db")}`;
  const env = { LIMIT_MEMORY: "0.1", LIMIT_CPU: "100", LIMIT_DISK: "100", REPEAT_SECONDS: "1" };
  const running = startFleet(["up", "--store", store], { cwd, env });
  await running.until((text) => / memory of \S+: [\d.]+ % \(limit 0\.1 %\)/.test(text), 40_000);

  const script = spawn(process.execPath, ["watch-alerts.mjs", store], {
    cwd,
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void script.kill("SIGKILL"));
  let heard = "";
  script.stdout.setEncoding("utf8").on("data", (chunk: string) => (heard += chunk));
  await vi.waitFor(() => expect(heard).toMatch(/alerts\.memory \{.*"metric":"memory","state":"ongoing"/), {
    timeout: 20_000,
  });
  const gone = once(script, "exit");
  script.kill("SIGINT");
  expect(await gone).toEqual([0, null]);
  running.signal("SIGINT");
  expect(await running.ended).toBe(0);
  expect(running.stdout().match(/raised +memory/g)?.length ?? 0).toBeLessThanOrEqual(1);
}, 90_000);
