import type { Command } from "commander";
import { addMasterOptions } from "./master.ts";
import { addJoinOptions, addRunOptions, type RunFlags } from "./run-options.ts";
import type { Terminal } from "./terminal.ts";

const COMMANDS = [
  {
    name: "up",
    about: "run automations on this machine, with a master",
    examples: "fleet up\n  fleet up automations/*.ts",
  },
  {
    name: "worker",
    about: "run automations as one worker of many",
    examples:
      "fleet worker --store redis://localhost:6379 --only scraper --capacity 20\n  FLEET_TOKEN=… fleet worker --join http://10.0.0.5:4400",
  },
  { name: "dev", about: "as up, and load changed files when they are saved", examples: "fleet dev" },
] as const;

/** `fleet up`, `fleet worker` and `fleet dev`. What they need is loaded only when one of them runs. */
export function addRun(program: Command, terminal: Terminal): void {
  for (const { name, about, examples } of COMMANDS) {
    const declared = addRunOptions(program.command(`${name} [files...]`).description(about));
    (name === "worker" ? addJoinOptions : addMasterOptions)(declared)
      .addHelpText(
        "after",
        `\nFiles or globs take the place of those that fleet.config.ts lists.\n\nExamples:\n  ${examples}`,
      )
      .action(async (files: string[], _options, command: Command) => {
        const { run } = await import("./run.ts");
        await run({
          files,
          flags: command.optsWithGlobals<RunFlags>(),
          terminal,
          dev: name === "dev",
          leads: name !== "worker",
        });
      });
  }
}
