// `fleet pool put`, `claim`, `release`, `retire`: what changes a pool.
import { FleetError } from "../errors.ts";
import { SILENT, Throttle } from "../internal/log.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { ItemTags } from "../protocol/pool.ts";
import { Pools } from "../primitives/pools.ts";
import { PoolClaims } from "../primitives/pool-claims.ts";
import { PoolWaiters } from "../primitives/pool-waiters.ts";
import type { Store } from "../store/store.ts";
import { CommandFailed } from "./exit.ts";
import type { TargetFlags } from "./options.ts";
import { contractOf, findPool } from "../control/known-pool.ts";
import { payloadText, tagsOf } from "../primitives/pool-items.ts";
import { judged } from "./judged.ts";
import { jsonOr } from "./pool-view.ts";
import { parse, payloadsOf } from "./task-submit.ts";
import type { Terminal } from "./terminal.ts";
import { whoAmI } from "./whoami.ts";

export interface PutFlags extends TargetFlags {
  tags?: string;
  /** In ms, as all lengths of time here. */
  ttl?: number;
  id?: string;
  unchecked?: boolean;
}

export interface ClaimFlags extends TargetFlags {
  where: ItemTags;
  count: number;
  hold: number;
  wait: number;
}

export async function putItems(
  store: Store,
  pool: string,
  texts: readonly string[],
  { flags, terminal }: { flags: PutFlags; terminal: Terminal },
): Promise<void> {
  const payloads = await payloadsOf(texts);
  if (flags.id !== undefined && payloads.length !== 1)
    throw new FleetError("FLEET_USAGE", `--id is for one item, got ${payloads.length}`);
  const tags = flags.tags === undefined ? {} : (parse(flags.tags, "--tags") as object);
  const contract = contractOf(await findPool(store, pool), flags.unchecked === true);
  const given = contract.tags === undefined && flags.tags === undefined ? {} : { tags };
  const whereOf = (at: number) => `pool "${pool}": item ${at}`;
  for (const [at, payload] of payloads.entries()) await payloadText(contract, whereOf(at), payload);
  await tagsOf(contract, whereOf(0), given.tags);
  const items = payloads.map((payload) => ({ payload, ...given }));
  const validated = flags.unchecked === true ? null : await judged(store, { pool }, items, whereOf);
  // Who types a command has no say in the pool's settings.
  const pools = new Pools(store, { log: SILENT, declareAs: "guest" });
  try {
    const ids = await pools.handle(contract).putMany(
      items.map((item) => ({
        ...item,
        ...(flags.ttl === undefined ? {} : { ttlSeconds: flags.ttl / 1000 }),
        ...(flags.id === undefined ? {} : { id: flags.id }),
      })),
    );
    terminal.print(terminal.json ? `${JSON.stringify({ pool, ids, validated })}\n` : `${ids.join("\n")}\n`);
  } finally {
    await pools.close();
  }
}

/** Claims and goes: the lease holds for its time, whoever has the item's token by then. */
export async function claimItems(
  store: Store,
  pool: string,
  { flags, terminal }: { flags: ClaimFlags; terminal: Terminal },
): Promise<void> {
  await findPool(store, pool);
  const { pools } = store;
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
  const waiters = new PoolWaiters((onHint) => pools.watch({ pool }, onHint));
  const claims = new PoolClaims({
    store: pools,
    pool,
    holder: uuidv7(),
    waiters,
    declare: () => Promise.reject(new FleetError("FLEET_NOT_FOUND", `pool "${pool}" is gone`)),
    log: SILENT,
    quietly: new Throttle(5000),
  });
  try {
    const { where, count, hold, wait } = flags;
    const granted = await claims.claim({
      where,
      n: count,
      holdMs: hold,
      waitMs: wait,
      autoExtend: false,
      by: whoAmI(),
      signal: stop.signal,
      fence: undefined,
    });
    if (granted === null)
      throw new CommandFailed(
        "FLEET_NOTHING_FREE",
        `pool "${pool}": ${count === 1 ? "no item that matches is" : `fewer than ${count} items that match are`} free; "fleet pool items ${pool}" shows who holds them, --wait waits for one`,
      );
    const lines = granted.map(({ item }) => ({
      id: item.id,
      payload: jsonOr(item.payload),
      tags: jsonOr(item.tagsJson),
      token: item.token,
      uses: item.uses,
      until: item.until,
    }));
    if (terminal.json) terminal.print(`${JSON.stringify(lines)}\n`);
    else for (const line of lines) terminal.print(`${JSON.stringify(line)}\n`);
  } finally {
    await waiters.close();
    await claims.settled();
  }
}

export async function releaseItem(
  store: Store,
  pool: string,
  { id, token, terminal }: { id: string; token: string; terminal: Terminal },
): Promise<void> {
  await findPool(store, pool);
  const { outcome } = await store.pools.change({ pool, id, token, change: { do: "release" } });
  if (outcome === "lease-lost")
    throw new FleetError(
      "FLEET_LEASE_LOST",
      `pool "${pool}": the lease of item ${id} with this token has ended`,
    );
  terminal.print(terminal.json ? `${JSON.stringify({ id, released: true })}\n` : `${id} is released\n`);
}

export async function retireItems(
  store: Store,
  pool: string,
  { ids, reason, terminal }: { ids: readonly string[]; reason: string; terminal: Terminal },
): Promise<void> {
  await findPool(store, pool);
  const outcomes = [];
  for (const id of ids) outcomes.push({ id, outcome: await store.pools.retire({ pool, id, note: reason }) });
  if (terminal.json) terminal.print(`${JSON.stringify(outcomes)}\n`);
  else
    for (const { id, outcome } of outcomes)
      terminal.print(outcome === "retired" ? `${id} is retired\n` : `${id} is not there\n`);
  if (outcomes.every(({ outcome }) => outcome === "unknown"))
    throw new FleetError("FLEET_NOT_FOUND", `pool "${pool}": nothing was retired`);
}
