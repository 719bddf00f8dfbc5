import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { FleetError } from "../errors.ts";
import { workerState } from "../protocol/status.ts";
import { storeKind } from "../store/open.ts";
import type { Store } from "../store/store.ts";
import { CommandFailed } from "./exit.ts";
import { addTargetOptions, type TargetFlags } from "./options.ts";
import { findTarget, openExisting, type Target } from "./target.ts";
import type { Terminal } from "./terminal.ts";

interface WipeFlags extends TargetFlags {
  yes?: boolean;
  force?: boolean;
}

export function addWipe(program: Command, terminal: Terminal): void {
  addTargetOptions(program.command("wipe").description("delete everything of a fleet from its store"))
    .option("--yes", "do not ask")
    .option("--force", "also while workers are alive")
    .addHelpText(
      "after",
      "\nDeletes streams, queues, pools, schedules, locks, counters, rate limits, configs with their history, and records of workers,\nof this namespace only.\n\nExamples:\n  fleet wipe\n  fleet wipe --store redis://localhost:6379 --namespace staging --yes",
    )
    .action((_options, command: Command) => wipe(command.optsWithGlobals<WipeFlags>(), terminal));
}

async function wipe(flags: WipeFlags, terminal: Terminal): Promise<void> {
  const target = await findTarget(flags);
  const what = describe(target);
  if (flags.yes !== true && !process.stdin.isTTY) {
    throw new FleetError("FLEET_USAGE", `this would delete ${what}; say --yes to do it without being asked`);
  }
  const store = await openExisting(target);
  try {
    if (flags.force !== true) await refuseWhileAlive(store);
    if (flags.yes !== true) await confirm(what, terminal);
    const { deleted } = await store.wipe();
    terminal.print(
      terminal.json
        ? `${JSON.stringify({ store: target.shown, namespace: store.namespace, deleted })}\n`
        : `Deleted ${what} (${deleted} keys or rows).\n`,
    );
  } finally {
    await store.close();
  }
}

function describe({ url, shown, namespace }: Target): string {
  if (namespace === "" && storeKind(url) === "remote") return `everything of the fleet that ${shown} serves`;
  const space = namespace === "" ? "without a namespace" : `of namespace "${namespace}"`;
  return `everything of the fleet ${space} in ${shown}`;
}

async function refuseWhileAlive(store: Store): Promise<void> {
  const { workers, now } = await store.registry.view();
  const alive = workers.filter((worker) => workerState(worker, now) !== "offline").map(({ id }) => id);
  if (alive.length > 0) {
    throw new CommandFailed(
      "FLEET_WORKERS_ALIVE",
      `${alive.length === 1 ? "a worker is" : `${alive.length} workers are`} alive (${alive.join(", ")}); stop ${alive.length === 1 ? "it" : "them"} first, or say --force`,
    );
  }
}

async function confirm(what: string, terminal: Terminal): Promise<void> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    terminal.complain(`This deletes ${what}. It cannot be undone.\n`);
    const answer = await prompt.question('Type "wipe" to go on: ');
    if (answer.trim() !== "wipe") throw new CommandFailed("FLEET_NOT_CONFIRMED", "nothing was deleted");
  } finally {
    prompt.close();
  }
}
