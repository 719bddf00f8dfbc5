// What a long-running command keeps on this machine, and how it lets its store go.
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { FleetError, messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { writeIgnoreFile } from "../project/build.ts";
import type { Store } from "../store/store.ts";

/** `.fleet/` beside the config, or where `FLEET_DATA_DIR` says; where it is missing it is made for its owner alone. */
export function makeDataDir(dir: string): string {
  const own = process.env.FLEET_DATA_DIR;
  const dataDir = own === undefined || own === "" ? join(dir, ".fleet") : resolve(own);
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    writeIgnoreFile(dataDir);
  } catch (error) {
    throw new FleetError(
      "FLEET_CONFIG_INVALID",
      `cannot make the data folder ${dataDir}: ${messageOf(error)}`,
      { cause: error },
    );
  }
  return dataDir;
}

/** A store that is away must not keep a process that has done its work from ending. */
export async function closeStore(store: Store, log: Log): Promise<void> {
  try {
    await store.close();
  } catch (error) {
    log.warn("the store did not close cleanly", { error: messageOf(error) });
  }
}
