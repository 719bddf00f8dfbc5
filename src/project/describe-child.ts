// Runs in a process of its own: loads users' modules and sends back, as plain data, what they define. Started by `describe.ts`.
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { isAutomation } from "../automation/definition.ts";
import { manifestOf } from "../automation/manifest.ts";
import { FleetError, isFleetError } from "../errors.ts";
import { OWN_SECRETS } from "../internal/own-secrets.ts";
import { configOf } from "./config.ts";
import type {
  DescribedAutomation,
  DescribeMessage,
  DescribeRequest,
  ModuleToRead,
} from "./describe-protocol.ts";
import { describeFailure } from "./failure.ts";

/**
 * Ends this process when its parent is gone, also while user code blocks the event loop: a thread of its own compares the
 * parent's id with the one given at the start, as an orphan gets another parent.
 */
const GUARD = `
  const { workerData: parent } = require("node:worker_threads");
  setInterval(() => process.ppid !== parent && process.kill(process.pid, "SIGKILL"), 500);
`;

function send(message: DescribeMessage): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, () => resolve());
  });
}

/** What is being loaded at present. */
let loading: string | undefined;

async function describe(request: DescribeRequest): Promise<void> {
  // Not by a flag of the process, which would read the maps of Fleet's own files as well.
  process.setSourceMapsEnabled(true);
  if (request.kind === "automations") for (const name of OWN_SECRETS) delete process.env[name];
  for (const module of request.modules) {
    loading = module.source;
    await send({ type: "loading", source: module.source });
    const answer = await read(request, module);
    await send(answer);
    if (answer.type === "failed") return;
  }
  loading = undefined;
  await send({ type: "done" });
}

async function read(request: DescribeRequest, module: ModuleToRead): Promise<DescribeMessage> {
  const { source } = module;
  try {
    const exports = (await import(pathToFileURL(module.module).href)) as { default?: unknown };
    if (request.kind === "config") return { type: "config", source, config: configOf(exports.default) };
    return { type: "automations", source, automations: automationsOf(exports.default, module.version) };
  } catch (error) {
    const code = isFleetError(error) ? error.code : "FLEET_PROJECT_INVALID";
    return { type: "failed", source, code, message: describeFailure(error) };
  }
}

function automationsOf(exported: unknown, version: string): DescribedAutomation[] {
  const list: unknown[] = Array.isArray(exported) ? exported : [exported];
  if (list.length === 0 || !list.every(isAutomation)) {
    const what = exported === undefined ? "it has no default export" : "its default export is none";
    throw new FleetError(
      "FLEET_PROJECT_INVALID",
      `no automation found: ${what}; write export default defineContinuous("name", { … }), or an array of them`,
    );
  }
  return list.map((automation) => ({
    manifest: manifestOf(automation, version),
    env: automation.options.env,
    isolate: automation.options.isolate ?? "automation",
  }));
}

/** Running out of work while a module loads means that what it awaits can never come. */
function reportDeadlock(): void {
  if (loading === undefined) return;
  const message = "its top-level await can never finish: nothing is left that could settle it";
  void send({ type: "failed", source: loading, code: "FLEET_PROJECT_INVALID", message }).then(() =>
    process.exit(1),
  );
}

new Worker(GUARD, { eval: true, workerData: Number(process.argv[2]) }).unref();
process.on("disconnect", () => process.exit(1));
process.on("beforeExit", reportDeadlock);
process.on("message", (request: DescribeRequest) => {
  // The channel alone must not hold the process open while it reads, or it would never run out of work.
  process.channel?.unref();
  // User code may have left timers and sockets open at its top level: the parent ends this process once all is read.
  void describe(request).then(() => process.channel?.ref());
});
