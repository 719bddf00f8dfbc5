// Short (`npm test`): what a child process sends of its log, by the level that its worker writes. Needs dist/.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import type { LogLevel } from "../src/internal/log.ts";
import { machineMs } from "../src/internal/timers.ts";
import type { FromHost } from "../src/protocol/host.ts";
import { processRuntime } from "../src/worker/process-runtime.ts";
import { makeProject } from "./support/cli.ts";

test.each<[LogLevel, LogLevel[]]>([
  ["debug", ["debug", "info", "warn", "error"]],
  ["info", ["info", "warn", "error"]],
  ["error", ["error"]],
])(
  "with level %s a child sends %j",
  async (logLevel, expected) => {
    const cwd = makeProject({
      "talker.mjs": `
      import { defineContinuous } from "fleet-framework";
      export default defineContinuous("talker", {
        async runSlot(ctx) {
          for (const level of ["debug", "info", "warn", "error"]) ctx.log[level]("said", { level });
        },
      });`,
    });
    const runtime = processRuntime(
      {
        worker: "w",
        storeUrl: `sqlite:${join(cwd, "fleet.db")}`,
        namespace: "",
        leaseMs: 60_000,
        logLevel,
      },
      `level-${logLevel}-${process.pid}`,
    );
    const heard: FromHost[] = [];
    const exited = vi.fn<() => void>();
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
      (message) => heard.push(message),
      exited,
    );
    onTestFinished(async () => {
      host.kill();
      await vi.waitFor(() => expect(exited).toHaveBeenCalled(), { timeout: 10_000 });
      await runtime.close();
    });
    const until = (type: FromHost["type"]) =>
      vi.waitFor(() => expect(heard.map((message) => message.type)).toContain(type), { timeout: 20_000 });
    await until("ready");
    host.tell({ type: "leases", until: { 0: machineMs() + 60_000 } });
    host.tell({ type: "run", slotId: 0, token: "1", slotCount: 1, config: {}, configKey: "{}" });
    await until("ended");
    const said = heard.flatMap((message) =>
      message.type === "log" && message.message === "said" ? [message.level] : [],
    );
    expect(said).toEqual(expected);
  },
  60_000,
);
