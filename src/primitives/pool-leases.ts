import { number, oneOf, text } from "../contracts/options.ts";
import type { PoolContract } from "../contracts/pool.ts";
import type { InferOutput, Schema } from "../contracts/schema/standard.ts";
import { check, payloadError } from "../contracts/validate.ts";
import type { Log } from "../internal/log.ts";
import type { PoolStore } from "../store/pool-store.ts";
import type { LeaseBook } from "./lease-book.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { Granted } from "./pool-claims.ts";
import { payloadText, tagsOf } from "./pool-items.ts";
import { PoolHold } from "./pool-lease.ts";
import type { Lease } from "./pool.ts";
import { toMs } from "./queue-options.ts";

const DAY = 86_400;
export const holdSeconds = number({ above: 0, max: DAY });
const coolSeconds = number({ min: 0, max: 365 * DAY });
export const retireNote = text({ max: 1000 });
const verdict = oneOf(["ok", "bad"]);

export interface LeasesParts {
  contract: PoolContract;
  store: PoolStore;
  log: Log;
  books: readonly LeaseBook[];
  /** Given where the lease extends itself. */
  keeper: LeaseKeeper | undefined;
  holdMs: number;
}

/**
 * Leases of what was granted. An item whose payload no longer fits the contract's schema is no use to anybody: it is retired, with a note.
 * Then the answer has fewer leases than were granted.
 */
export async function leasesOf(parts: LeasesParts, granted: readonly Granted[]): Promise<Lease[]> {
  const { contract, store, log, books, keeper, holdMs } = parts;
  const leases: Lease[] = [];
  for (const { item, untilMs } of granted) {
    const hold = new PoolHold({ pool: contract.name, item, untilMs, holdMs, store, log, keeper, books });
    const checked = await check(contract.payload, parsed(item.payload));
    if (checked.ok) {
      leases.push(leaseOf(contract, hold, { ...item, payload: checked.value }));
      continue;
    }
    const note = payloadError("the payload does not fit its schema any more", checked.issues).message;
    log.warn(`pool "${contract.name}": an item was retired: ${note}`, { pool: contract.name, item: item.id });
    await hold.end({ do: "retire", note: note.slice(0, 1000) }, "it was retired").catch(() => hold.giveUp());
  }
  return leases;
}

function leaseOf(
  contract: PoolContract,
  hold: PoolHold,
  item: { id: string; payload: unknown; tagsJson: string; token: string; uses: number },
): Lease {
  const where = `pool "${contract.name}": item ${item.id}`;
  return {
    id: item.id,
    payload: item.payload,
    tags: JSON.parse(item.tagsJson) as InferOutput<Schema>,
    token: item.token,
    uses: item.uses,
    get signal() {
      return hold.signal;
    },
    extend: async (seconds) => {
      const holdMs = toMs(holdSeconds(seconds, `${where}: extend: seconds`));
      await hold.change({ do: "extend", holdMs });
    },
    release: () => hold.end({ do: "release" }, "it was released"),
    retire: async (reason) => {
      const note = reason === undefined ? "" : retireNote(reason, `${where}: retire: reason`);
      await hold.end({ do: "retire", note }, "the item was retired");
    },
    cool: async (seconds) => {
      const ms = toMs(coolSeconds(seconds, `${where}: cool: seconds`));
      await hold.end({ do: "cool", ms }, "it was released, and the item rests");
    },
    report: async (what) => hold.change({ do: "report", what: verdict(what, `${where}: report`) }),
    update: async ({ payload, tags }) => {
      const changed = {
        ...(payload === undefined ? {} : { payload: await payloadText(contract, where, payload) }),
        ...(tags === undefined ? {} : await tagsOf(contract, where, tags)),
      };
      await hold.change({ do: "update", ...changed });
    },
    [Symbol.asyncDispose]: () => hold.giveUp(),
  };
}

/** What some other program put in may be no JSON at all: then it fits no schema. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return undefined;
  }
}
