import { dirname, resolve } from "node:path";
import { FleetError } from "../errors.ts";
import { findConfig } from "../project/files.ts";
import { closeStore, makeDataDir } from "./data-dir.ts";
import { openLog } from "./log.ts";
import type { MasterCommandFlags } from "./master.ts";
import { runMaster } from "./master-run.ts";
import { listenForSignals } from "./shutdown.ts";
import { findTarget, openForWorker } from "./target.ts";
import type { Terminal } from "./terminal.ts";
import { timingsFrom } from "./timings.ts";

/** Shorter than that of those who come through this master: they hear the store's own error, not that the answer is unknown. */
const DEADLINE_SECONDS = 4;

/** Runs a master until a signal ends it. */
export async function master(flags: MasterCommandFlags, terminal: Terminal): Promise<void> {
  const log = openLog(terminal, flags.logLevel);
  if (flags.master !== undefined || flags.token !== undefined)
    throw new FleetError(
      "FLEET_USAGE",
      "fleet master takes the store itself (--store); its own token is FLEET_TOKEN",
    );
  const target = await findTarget(flags);
  if (target.token !== undefined)
    throw new FleetError(
      "FLEET_USAGE",
      "a master works on a store, not on another master; name it by --store",
    );
  const config = findConfig(process.cwd(), flags.config);
  const dataDir = makeDataDir(config === undefined ? process.cwd() : dirname(resolve(config)));
  const timings = timingsFrom(process.env["FLEET_TIMINGS"]);
  const store = await openForWorker(target, log, DEADLINE_SECONDS);
  const signals = listenForSignals();
  try {
    const running = await runMaster({ store, dataDir, flags, timings, log, movesAside: false });
    log.info(`serving ${target.shown}${target.namespace === "" ? "" : `, namespace ${target.namespace}`}`);
    const name = await signals.first;
    log.info(`${name}: ending`);
    await running.close();
  } finally {
    signals.close();
    await closeStore(store, log);
  }
}
