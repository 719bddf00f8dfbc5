// Claims items, uses them, gives them back in time or too late, and writes down each step, until it is killed. Its wall clock may be wrong.
import { machineNow } from "./wrong-clock.ts";
import { appendFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { fleetOn } from "../../../src/automation/fleet.ts";
import { definePool } from "../../../src/contracts/pool.ts";
import { isFleetError } from "../../../src/errors.ts";
import { SILENT } from "../../../src/internal/log.ts";
import type { Lease } from "../../../src/primitives/pool.ts";
import type { HolderChange } from "../../../src/store/pool-store.ts";
import { openStore } from "../../../src/store/open.ts";
import { readInput } from "./ipc.ts";

export interface PoolHolderInput {
  url: string;
  namespace: string;
  /** Where each step is written to. */
  ledger: string;
  /** Which life of which process this is: a waiter of an earlier life stands in a line of its own. */
  life: string;
  takers: number;
  holdMs: number;
  /** How wrong this process's wall clock is. Where the machine's clock is the store's, the store is told the right time. */
  storeOffsetMs: number;
  /** Numbers from 0 to 1 to choose by, over and over. */
  chances: number[];
}

/** One line of the ledger. `granted`, `until`, `asked`: Unix ms by the clock of the store, which is the machine's. */
export type HolderLine = { life: string } & (
  | { what: "start"; offsetMs: number }
  | { what: "claim"; item: string; token: string; granted: number; until: number }
  | { what: "extended"; item: string; token: string; until: number; latest: number }
  // Before the call: who is killed before its answer may have ended its claim.
  | { what: "asking"; item: string; token: string; asked: number }
  | {
      what: "call";
      item: string;
      token: string;
      change: string;
      /** A call of the lease, or one that goes past its own look at the time: then the store alone refuses it. */
      by: "lease" | "store";
      /** Whether this holder was late on purpose. */
      meant: boolean;
      asked: number;
      /** From before the claim was asked for to the answer of this call, by a monotonic clock. */
      age: number;
      code: string;
    }
);

const { url, namespace, ledger, life, takers, holdMs, storeOffsetMs, chances } =
  await readInput<PoolHolderInput>();
const KEYS = definePool("keys", { payload: z.string(), tags: z.object({ for: z.array(z.string()) }) });
const store = await openStore(url, { namespace, clockOffsetMs: storeOffsetMs });
const fleet = fleetOn(store, { log: SILENT, source: life });

let turn = 0;
const random = () => chances[turn++ % chances.length] as number;
// One write per line, which has left this process when the call returns.
type Bare = HolderLine extends infer Line ? (Line extends HolderLine ? Omit<Line, "life"> : never) : never;
const note = (line: Bare) => appendFileSync(ledger, `${JSON.stringify({ life, ...line })}\n`);

interface Claimed {
  granted: number;
  until: number;
  startedMs: number;
}
const claimed = new Map<string, Claimed>();
const claim = store.pools.claim.bind(store.pools);
// The store's own times of what the handles are given.
store.pools.claim = async (args) => {
  const startedMs = performance.now();
  const answer = await claim(args);
  if (answer.outcome === "claimed")
    for (const { token, until } of answer.items)
      claimed.set(token, { granted: answer.now, until, startedMs });
  return answer;
};

type Held = Lease<z.ZodString, z.ZodObject<{ for: z.ZodArray<z.ZodString> }>>;

async function call(
  lease: Held,
  change: HolderChange,
  by: "lease" | "store",
  meant = false,
): Promise<string> {
  const { id: item, token } = lease;
  const asked = machineNow();
  if (change.do === "release" || change.do === "cool") note({ what: "asking", item, token, asked });
  let code = "done";
  try {
    if (by === "store") {
      const { outcome } = await store.pools.change({ pool: "keys", id: item, token, change });
      if (outcome === "lease-lost") code = "FLEET_LEASE_LOST";
    } else if (change.do === "release") await lease.release();
    else if (change.do === "extend") await lease.extend(change.holdMs / 1000);
    else if (change.do === "report") await lease.report(change.what);
    else if (change.do === "cool") await lease.cool(change.ms / 1000);
    else throw new Error(`no holder of this test does so: ${change.do}`);
  } catch (error) {
    code = isFleetError(error) ? error.code : String(error);
  }
  const age = performance.now() - (claimed.get(token) as Claimed).startedMs;
  note({ what: "call", item, token, change: change.do, by, meant, asked, age, code });
  return code;
}

async function use(lease: Held): Promise<void> {
  const how = random();
  if (how < 0.75) await delay(random() * 10);
  else if (how < 0.85) {
    const until = machineNow() + holdMs;
    const code = await call(lease, { do: "extend", holdMs }, "lease");
    const latest = machineNow() + holdMs;
    if (code === "done") note({ what: "extended", item: lease.id, token: lease.token, until, latest });
    await delay((random() * holdMs) / 2);
  } else {
    // Too late for everything.
    await delay(holdMs * (1.1 + random()));
    await call(lease, { do: "report", what: "bad" }, "lease", true);
    await call(lease, { do: "release" }, "store", true);
    await call(lease, { do: "extend", holdMs }, "store", true);
    return;
  }
  const by = random() < 0.5 ? "lease" : "store";
  await call(lease, random() < 0.1 ? { do: "cool", ms: 20 } : { do: "release" }, by);
}

async function take(): Promise<never> {
  const items = fleet.pool(KEYS).where({ for: ["any", life] });
  for (;;) {
    const waitSeconds = random() < 0.3 ? 0.5 : 0;
    let lease: Held | null = null;
    try {
      lease = await items.claim({ holdSeconds: holdMs / 1000, waitSeconds });
    } catch (error) {
      // A file that a frozen process keeps locked for long.
      if (!isFleetError(error)) throw error;
    }
    if (lease === null) {
      await delay(5);
      continue;
    }
    const { granted, until } = claimed.get(lease.token) as Claimed;
    note({ what: "claim", item: lease.id, token: lease.token, granted, until });
    await use(lease);
    claimed.delete(lease.token);
  }
}

note({ what: "start", offsetMs: Date.now() - machineNow() });
await Promise.all(Array.from({ length: takers }, take));
