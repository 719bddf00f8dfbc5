// Claims an item of a pool, tells so, and holds it until it is killed.
import { z } from "zod";
import { definePool } from "../../../src/contracts/pool.ts";
import { SILENT } from "../../../src/internal/log.ts";
import { Pools } from "../../../src/primitives/pools.ts";
import { openStore } from "../../../src/store/open.ts";
import { readInput, tell } from "./ipc.ts";

export interface HolderInput {
  url: string;
  namespace: string;
  pool: string;
  holdSeconds: number;
  autoExtend: boolean;
}
export type HolderMessage = { held: string; token: string } | { lost: string };

const input = await readInput<HolderInput>();
const store = await openStore(input.url, { namespace: input.namespace });
const pool = new Pools(store, { log: SILENT }).handle(definePool(input.pool, { payload: z.unknown() }));
const { holdSeconds, autoExtend } = input;
const lease = await pool.claim({ holdSeconds, autoExtend });
if (lease === null) throw new Error("nothing was free");
lease.signal.addEventListener("abort", () => {
  lease.report("ok").catch((error: { code: string }) => void tell({ lost: error.code }));
});
// A lease alone does not keep its process alive.
setInterval(() => undefined, 60_000);
await tell({ held: lease.id, token: lease.token });
