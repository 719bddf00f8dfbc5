// Short (`npm test`): what is kept of a child's standard error when it has ended. Needs dist/.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { machineMs } from "../src/internal/timers.ts";
import type { FromHost } from "../src/protocol/host.ts";
import { processRuntime } from "../src/worker/process-runtime.ts";
import type { HostExit } from "../src/worker/runtime.ts";
import { makeProject } from "./support/cli.ts";

const SECRET = "S3CRET-swordfish";
const FROM_FILE = `first line\n${SECRET.repeat(300)}`;

test("values that came by reference are hidden in it, also where it begins in the middle of one", async () => {
  const cwd = makeProject({
    "talker.mjs": `
      import { writeSync } from "node:fs";
      import { defineContinuous } from "fleet-framework";
      export default defineContinuous("talker", {
        runSlot({ config }) {
          writeSync(2, "begins with " + config.file + " and then " + config.key + " the end\\n");
          process.exit(1);
        },
      });`,
  });
  writeFileSync(join(cwd, "secret"), FROM_FILE);
  vi.stubEnv("TALKERS_KEY", SECRET);
  onTestFinished(() => void vi.unstubAllEnvs());
  const written = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => written.mockRestore());
  const runtime = processRuntime(
    {
      worker: "w",
      storeUrl: `sqlite:${join(cwd, "fleet.db")}`,
      namespace: "",
      leaseMs: 60_000,
      logLevel: "info",
    },
    `last-words-${process.pid}`,
  );
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
  host.tell({ type: "leases", until: { 0: machineMs() + 60_000 } });
  const config = { key: "env:TALKERS_KEY", file: `file:${join(cwd, "secret")}` };
  host.tell({ type: "run", slotId: 0, token: "1", slotCount: 1, config, configKey: "1" });
  await vi.waitFor(() => expect(ends).toHaveLength(1), { timeout: 60_000 });
  // More was written than is kept, so the beginning is gone.
  expect(ends[0]?.stderr).toBe(`${config.file} and then env:TALKERS_KEY the end\n`);
  expect(JSON.stringify(heard)).not.toContain("S3CRET");
}, 90_000);
