import type { Command } from "commander";
import type { LogLevel } from "../internal/log.ts";
import type { MasterFlags } from "./master-run.ts";
import { addTargetOptions, logLevelOption, type TargetFlags, wholeNumber } from "./options.ts";
import type { Terminal } from "./terminal.ts";

/** Where a master listens, and what it tells those that join. */
export function addMasterOptions(command: Command): Command {
  return command
    .option("--host <host>", "where the master listens (FLEET_HOST); default 127.0.0.1")
    .option("--port <port>", "its port (FLEET_PORT); default 4400, 0 for any", wholeNumber(0, 65_535))
    .option(
      "--worker-store <url>",
      "Redis address that workers get when they join, as their hosts see it (FLEET_WORKER_STORE); default: they go through the master",
    );
}

export type MasterCommandFlags = TargetFlags & MasterFlags & { logLevel: LogLevel };

/** `fleet master`: what it needs is loaded only when it runs. */
export function addMaster(program: Command, terminal: Terminal): void {
  addMasterOptions(
    addTargetOptions(
      program
        .command("master")
        .description("serve the REST API, lead the fleet, let workers of other hosts join"),
    ),
  )
    .addOption(logLevelOption())
    .addHelpText(
      "after",
      "\nThe admin token is FLEET_TOKEN, else one that is made at the first start and kept in .fleet/token (FLEET_DATA_DIR).\n\nExamples:\n  fleet master --store redis://localhost:6379\n  FLEET_TOKEN=… fleet master --host 0.0.0.0 --store redis://localhost:6379 --worker-store redis://10.0.0.5:6379",
    )
    .action(async (_options, command: Command) => {
      const { master } = await import("./master-command.ts");
      await master(command.optsWithGlobals<MasterCommandFlags>(), terminal);
    });
}
