import type { z } from "zod";
import type { itemShape, POOL_ROUTES } from "../../client/routes/pools.ts";
import { tagNames, whereTexts } from "../../contracts/pool-tags.ts";
import { eachAlone } from "../../control/damaged.ts";
import { contractOf, findPool, type KnownPool } from "../../control/known-pool.ts";
import { FleetError, isFleetError, messageOf } from "../../errors.ts";
import { payloadText, tagsOf } from "../../primitives/pool-items.ts";
import { toMs } from "../../primitives/queue-options.ts";
import type { ItemRecord, ItemState, ItemTags } from "../../protocol/pool.ts";
import type { HolderChange } from "../../store/pool-store.ts";
import type { Store } from "../../store/store.ts";
import { RequestProblem } from "../http/request-problem.ts";
import { type Handlers, RawJson } from "../handler.ts";
import { notFound } from "../../control/not-found.ts";
import { pageBy } from "../pages.ts";
import { inBody, judgeItem } from "../payloads.ts";
import { jsonPage, jsonWith } from "../raw-json.ts";
import { badCursor, knownOptions } from "../words.ts";

type Routes = typeof POOL_ROUTES;

export const POOL_HANDLERS: Handlers<keyof Routes> = {
  listPools: async ({ query }, { store, log }) => {
    const page = pageBy(await store.pools.list(), (name) => name, query);
    const stats = await eachAlone(
      page.items,
      (pool) => store.pools.stats({ pool }),
      (pool, error) => log.error("a pool cannot be read", { pool, error: messageOf(error) }),
    );
    return {
      ...page,
      items: page.items.flatMap((name, at) => {
        const known = stats[at];
        return known === undefined ? [] : [{ name, ...known.counts, waiting: known.waiting.length }];
      }),
    };
  },

  listItems: async ({ params: { name: pool }, query }, { store }) => {
    await findPool(store, pool);
    const { items, next } = await pageOf(store, pool, query);
    return new RawJson(jsonPage(items.map(itemText), next));
  },

  putItem: async ({ params: { name }, body, signal }, { store, pools, verdicts }) => {
    const contract = checkedContract(await findPool(store, name));
    const where = `pool "${name}"`;
    await payloadText(contract, where, body.payload).catch((error: unknown) => {
      throw inBody(error, "/payload");
    });
    const { tags } = body;
    const given = contract.tags === undefined && tags === undefined ? {} : { tags: tags ?? {} };
    await tagsOf(contract, where, given.tags).catch((error: unknown) => {
      throw atField(inBody(error, "/tags"), "/tags");
    });
    const validated = await judgeItem({ verdicts }, name, { payload: body.payload, ...given }, signal);
    const id = await pools.handle(contract).put({
      payload: body.payload,
      ...given,
      ...(body.ttl_seconds === undefined ? {} : { ttlSeconds: body.ttl_seconds }),
      ...(body.id === undefined ? {} : { id: body.id }),
    });
    return { id, validated };
  },

  removeItem: async ({ params: { name: pool, id } }, { store }) => {
    await findPool(store, pool);
    if ((await store.pools.remove({ pool, id })) === "unknown")
      throw notFound(`item in pool "${pool}" with the id`, id, []);
    return undefined;
  },

  claimItem: async ({ params: { name: pool }, body, signal, by }, { store, claims }) => {
    const where = whereOf(await findPool(store, pool), body.where);
    const item = await claims.claim(pool, {
      where,
      holdMs: toMs(body.hold_seconds),
      waitMs: toMs(body.wait_seconds),
      by: `API (${by.name})`,
      signal,
    });
    if (item === null) return { lease: null };
    const { id, token, uses, until } = item;
    const lease = jsonWith(
      { id, token: tokenOf({ id, token }), uses, until },
      { payload: item.payload, tags: item.tagsJson },
    );
    return new RawJson(`{"lease":${lease}}`);
  },

  extendClaim: async ({ params: { name, token }, body }, { store }) => {
    const holdMs = toMs(body.hold_seconds);
    const until = await change(store, name, token, { do: "extend", holdMs });
    return { until: until ?? 0 };
  },

  releaseClaim: async ({ params: { name, token } }, { store }) => {
    await change(store, name, token, { do: "release" });
    return undefined;
  },
};

/** What names a claim in an address: its fencing token, and which item it is of. */
function tokenOf({ id, token }: { id: string; token: string }): string {
  return `${token}.${Buffer.from(id, "utf8").toString("base64url")}`;
}

function claimOf(text: string): { id: string; token: string } {
  const [, token, coded] = /^(\d{1,32})\.([A-Za-z0-9_-]+)$/.exec(text) ?? [];
  const id = coded === undefined ? "" : Buffer.from(coded, "base64url").toString("utf8");
  if (token !== undefined && id !== "" && tokenOf({ id, token }) === text) return { id, token };
  throw new RequestProblem(
    400,
    "FLEET_REQUEST_INVALID",
    "this is no token of a claim; it is in the answer of the claim",
  );
}

async function change(store: Store, pool: string, text: string, what: HolderChange): Promise<number | null> {
  const { id, token } = claimOf(text);
  await findPool(store, pool);
  const answer = await store.pools.change({ pool, id, token, change: what });
  if (answer.outcome === "done") return answer.until;
  throw new FleetError(
    "FLEET_LEASE_LOST",
    `pool "${pool}": the lease of item ${id} with this token has ended; somebody else may hold the item by now`,
  );
}

function checkedContract(known: KnownPool) {
  const schema = known.published?.schema;
  if (schema !== undefined && schema !== null) return contractOf(known, false);
  throw new FleetError(
    "FLEET_CONFLICT",
    `no worker has published what items of "${known.name}" look like, so they cannot be checked; start a worker with an automation that declares uses: { put: [CONTRACT] } or { claim: [CONTRACT] }`,
  );
}

/** Tags that no worker has published are not known, and any may be named. */
function whereOf({ name, published }: KnownPool, given: object): ItemTags {
  const names = published?.pool === undefined ? undefined : tagNames(published.pool.tagsSchema);
  try {
    return whereTexts(`pool "${name}": where`, given, names);
  } catch (error) {
    throw atField(error, "/where");
  }
}

/** The error of an option, as one of a field of the body. */
function atField(error: unknown, pointer: string): unknown {
  if (!isFleetError(error, "FLEET_OPTION_INVALID")) return knownOptions(error);
  const { message } = error;
  return new FleetError("FLEET_OPTION_INVALID", message, { issues: [{ pointer, message }] });
}

/** What is going on comes first. */
const ORDER: readonly ItemState[] = ["held", "free", "cooling", "retired"];

/** One state after the other; the cursor says in which the page ended. */
async function pageOf(
  store: Store,
  pool: string,
  { state, limit, cursor }: { state?: ItemState | undefined; limit: number; cursor?: string | undefined },
): Promise<{ items: ItemRecord[]; next: string | null }> {
  const states = state === undefined ? ORDER : [state];
  let { at, inner } = placeOf(states, cursor);
  const items: ItemRecord[] = [];
  while (at < states.length && items.length < limit) {
    const page = await store.pools
      .page({
        pool,
        state: states[at] as ItemState,
        where: {},
        n: limit - items.length,
        ...(inner === undefined ? {} : { cursor: inner }),
      })
      .catch((error: unknown) => Promise.reject(badCursor(error)));
    items.push(...page.items);
    inner = page.next;
    if (inner === undefined) at += 1;
  }
  const over = at >= states.length;
  return { items, next: over ? null : `${states[at]}.${inner ?? ""}` };
}

function placeOf(
  states: readonly ItemState[],
  cursor: string | undefined,
): { at: number; inner: string | undefined } {
  if (cursor === undefined) return { at: 0, inner: undefined };
  const [, state, inner] = /^([a-z]+)\.(.*)$/s.exec(cursor) ?? [];
  const at = states.indexOf(state as ItemState);
  if (at < 0) throw badCursor(new FleetError("FLEET_OPTION_INVALID", "cursor"));
  return { at, inner: inner === "" ? undefined : inner };
}

function itemText(item: ItemRecord): string {
  const facts: Omit<z.output<typeof itemShape>, "payload" | "tags"> = {
    id: item.id,
    state: item.state,
    uses: item.uses,
    score: item.score,
    put_at: item.putAt,
    expires_at: item.expiresAt,
    holder: item.holder,
    cool_until: item.coolUntil,
    retired: item.retired,
  };
  return jsonWith(facts, { payload: item.payload, tags: item.tagsJson });
}
