import type { Command } from "commander";
import type { LogLevel } from "../internal/log.ts";
import {
  addStoreOptions,
  labelList,
  logLevelOption,
  nameList,
  seconds,
  type StoreFlags,
  wholeNumber,
} from "./options.ts";

/** What `fleet up`, `dev` and `worker` take. */
export interface RunFlags extends StoreFlags {
  config?: string;
  only?: string[];
  capacity?: number;
  labels?: Record<string, string>;
  id?: string;
  logLevel: LogLevel;
  drainSeconds: number;
}

const MAX_CAPACITY = 100_000;
const MAX_DRAIN_SECONDS = 86_400;

export function addRunOptions(command: Command): Command {
  return addStoreOptions(command)
    .option("--config <file>", "config file; default fleet.config.ts in this folder")
    .option("--only <names>", "run these automations only, as in a,b", nameList)
    .option("--capacity <n>", "most slots at once; default 100", wholeNumber(1, MAX_CAPACITY))
    .option("--labels <pairs>", "labels of this worker, as in region=eu,gpu=true", labelList)
    .option("--id <id>", "id of this worker; default stable per host and data folder")
    .option(
      "--drain-seconds <s>",
      "how long slots may take to end at a signal, before they are killed",
      seconds(MAX_DRAIN_SECONDS),
      30,
    )
    .addOption(logLevelOption());
}
