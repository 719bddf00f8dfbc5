import { type Command, Option } from "commander";
import type { LogLevel } from "../internal/log.ts";
import { PARTITION_POLICIES, type PartitionPolicy } from "../protocol/status.ts";
import type { MasterFlags } from "./master-run.ts";
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
export interface RunFlags extends StoreFlags, MasterFlags {
  config?: string;
  only?: string[];
  capacity?: number;
  labels?: Record<string, string>;
  id?: string;
  logLevel: LogLevel;
  drainSeconds: number;
  partition?: PartitionPolicy;
  partitionSeconds?: number;
  /** Of `worker`: the master to join. */
  join?: string;
  viaMaster?: boolean;
}

const MAX_CAPACITY = 100_000;
const MAX_DRAIN_SECONDS = 86_400;
const MAX_PARTITION_SECONDS = 86_400;

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
    .addOption(
      new Option(
        "--partition <policy>",
        "without the store: finish (slots end with their leases; default), stop (nothing outlives its lease), or exit (the worker ends after --partition-seconds, exit code 3)",
      ).choices(PARTITION_POLICIES),
    )
    .option(
      "--partition-seconds <s>",
      "with --partition exit: after so long without the store; default 60, at least the lease",
      seconds(MAX_PARTITION_SECONDS),
    )
    .addOption(logLevelOption());
}

/** What only `fleet worker` takes. */
export function addJoinOptions(command: Command): Command {
  return command
    .option(
      "--join <url>",
      "join the fleet of this master, in place of --store; its token by FLEET_TOKEN or --token",
    )
    .option(
      "--via-master",
      "with --join: let all traffic go through the master, also where it names a store",
    );
}
