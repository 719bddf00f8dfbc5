// A child process as its supervisor starts it, without one: what it says, and how it ends. Needs dist/.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, vi } from "vitest";
import type { LogLevel } from "../../src/internal/log.ts";
import { machineMs } from "../../src/internal/timers.ts";
import type { FromHost } from "../../src/protocol/host.ts";
import { processRuntime } from "../../src/worker/process-runtime.ts";
import type { HostExit } from "../../src/worker/runtime.ts";
import { makeProject } from "./cli.ts";

export interface Talker {
  heard: FromHost[];
  ends: HostExit[];
  /** Begins a run of its slot 0. */
  run: (config: object) => void;
}

/** `source` defines an automation "talker". The process is gone when the test ends. */
export function startTalker(
  source: string,
  { logLevel = "info", files = {} }: { logLevel?: LogLevel; files?: Record<string, string> } = {},
): Talker & { cwd: string } {
  const cwd = makeProject({ ...files, "talker.mjs": source });
  const link = {
    worker: "w",
    storeUrl: `sqlite:${join(cwd, "fleet.db")}`,
    namespace: "",
    leaseMs: 60_000,
    logLevel,
  };
  const runtime = processRuntime(link, `talker-${logLevel}-${process.pid}`);
  const heard: FromHost[] = [];
  const ends: HostExit[] = [];
  const module = join(cwd, "talker.mjs");
  const manifest = {
    name: "talker",
    kind: "continuous",
    version: "1",
    configSchema: null,
    stateSchema: null,
    output: null,
    tasks: null,
    uses: {},
    liveConfig: false,
  } as const;
  const host = runtime.start(
    { manifest, module, source: pathToFileURL(module).href, isolate: "automation" },
    (message) => void heard.push(message),
    (exit) => void ends.push(exit),
  );
  onTestFinished(async () => {
    host.kill();
    await vi.waitFor(() => expect(ends).toHaveLength(1), { timeout: 20_000 });
    await runtime.close();
  });
  return {
    cwd,
    heard,
    ends,
    run: (config) => {
      host.tell({ type: "leases", until: { 0: machineMs() + 60_000 } });
      host.tell({ type: "run", slotId: 0, token: "1", slotCount: 1, config, configKey: "1" });
    },
  };
}
