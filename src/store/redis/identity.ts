import { FleetError, messageOf } from "../../errors.ts";
import { Throttle } from "../../internal/log.ts";
import { monotonicMs } from "../../internal/timers.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import type { StoreOptions } from "../store.ts";
import type { Keys } from "./keys.ts";
import type { RunScript } from "./scripts.ts";

/** Layout of keys and values that this version reads and writes. */
export const SCHEMA_VERSION = 1;

/** Which fleet lives here. Events and hints bear its id, because pub/sub knows no databases. */
export interface Identity {
  readonly id: string;
  /**
   * Writes the id again where the store has lost it (it came back empty); called by whoever notices. Never fails: the next one
   * to notice tries again.
   */
  reseed(): Promise<void>;
}

/** Reads the fleet's id, or makes one at the first connection. A newer layout is refused with `FLEET_STORE_INCOMPATIBLE`. */
export async function openIdentity(
  run: RunScript,
  keys: Keys,
  shown: string,
  log: StoreOptions["log"],
): Promise<Identity> {
  const settle = async (candidate: string) => {
    const [id, schema] = await run<[string, string]>("fleet-open", {
      keys: { meta: keys.fleet.meta },
      args: { id: candidate, schema: String(SCHEMA_VERSION) },
      repeatable: true,
    });
    if (Number(schema) > SCHEMA_VERSION) {
      throw new FleetError(
        "FLEET_STORE_INCOMPATIBLE",
        `${shown} has layout ${schema}, this version knows ${SCHEMA_VERSION} at most: update this program`,
      );
    }
    return id;
  };

  let id = await settle(uuidv7());
  const trouble = new Throttle(10_000);
  return {
    get id() {
      return id;
    },
    async reseed() {
      try {
        const present = await settle(id);
        if (present === id) return;
        log?.("warn", "the store has been emptied and another fleet id was given; taking that", {
          was: id,
          is: present,
        });
        id = present;
      } catch (error) {
        trouble.pass(monotonicMs(), () =>
          log?.("warn", `could not look at the fleet's id: ${messageOf(error)}`),
        );
      }
    },
  };
}
