// Entry of the command `fleet`.
import { Command, CommanderError } from "commander";
import { FleetError } from "../errors.ts";
import { VERSION } from "../protocol/version.ts";
import { addConfig } from "./config.ts";
import { addCounter } from "./counter.ts";
import { EXIT, reportError } from "./exit.ts";
import { addEvent } from "./event.ts";
import { addExplain } from "./explain.ts";
import { addGraph } from "./graph.ts";
import { addLimit } from "./limit.ts";
import { addLock } from "./lock.ts";
import { addMaster } from "./master.ts";
import { addStoreOptions } from "./options.ts";
import { addOperate } from "./operate.ts";
import { addPool } from "./pool.ts";
import { addRun } from "./run-command.ts";
import { addSchedule } from "./schedule.ts";
import { addStatus } from "./status.ts";
import { addSteer } from "./steer.ts";
import { addStream } from "./stream.ts";
import { addTask } from "./task.ts";
import { endQuietlyOnClosedPipe, openTerminal, type Terminal } from "./terminal.ts";
import { addWipe } from "./wipe.ts";

const EXAMPLES = `
Examples:
  fleet dev                                 run the project in this folder, reload on save
  fleet up automations/*.ts                 run these files
  fleet worker --store redis://host:6379    one worker of many, on a shared store
  fleet worker --join http://host:4400      one worker of many, through a master
  fleet status                              what runs where, and what does not and why
  fleet explain scraper                     why it does not do more than it does
  fleet scale url-pinger 4                  run four slots of it
  fleet stream tail url-pinger              follow a stream
  fleet task submit scraper '{"url":"…"}'   give a queue something to do

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 store or master unreachable, 4 not authorised, 5 drain was forced.`;

function fleetCommand(terminal: Terminal): Command {
  const program = new Command("fleet")
    .description("Runs automations on many machines and lets them talk to each other.")
    .version(VERSION, "-V, --version", "print the version")
    .exitOverride()
    .configureOutput({ outputError: () => undefined })
    .configureHelp({ showGlobalOptions: false })
    .addHelpText("after", EXAMPLES);
  addStoreOptions(program);
  addRun(program, terminal);
  addMaster(program, terminal);
  addStatus(program, terminal);
  addExplain(program, terminal);
  addGraph(program, terminal);
  addSteer(program, terminal);
  addConfig(program, terminal);
  addOperate(program, terminal);
  addStream(program, terminal);
  addTask(program, terminal);
  addSchedule(program, terminal);
  addPool(program, terminal);
  addEvent(program, terminal);
  addLock(program, terminal);
  addCounter(program, terminal);
  addLimit(program, terminal);
  addWipe(program, terminal);
  return program;
}

/** Runs one command and answers its exit code. */
async function main(args: readonly string[]): Promise<number> {
  const terminal = openTerminal();
  const options = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  terminal.json = options.includes("--json");
  try {
    await fleetCommand(terminal).parseAsync(args, { from: "user" });
    return Number(process.exitCode ?? EXIT.done);
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportError(error, terminal);
    // Help and version have been printed. Without a command the help goes to stderr, as a usage error.
    if (error.exitCode === 0) return EXIT.done;
    if (error.code === "commander.help") return EXIT.usage;
    return reportError(new FleetError("FLEET_USAGE", error.message.replace(/^error: /, "")), terminal);
  }
}

endQuietlyOnClosedPipe();
process.exitCode = await main(process.argv.slice(2));
