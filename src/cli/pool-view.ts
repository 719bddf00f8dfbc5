// How pools and their items are shown.
import { escapeControls } from "../internal/redact.ts";
import { ITEM_STATES, type ItemRecord } from "../protocol/pool.ts";
import type { PoolStats } from "../store/pool-store.ts";
import { type Column, duration, renderTable } from "./table.ts";

type Paint = (text: string) => string;

/** One line of `fleet pool ls --json`. */
export interface PoolLine {
  name: string;
  free: number;
  held: number;
  cooling: number;
  retired: number;
  /** Who waits, in order, at most 100; since when in Unix milliseconds. */
  waiting: { by: string; where: object; n: number; since: number }[];
  settings: object;
  totals: object;
}

export function poolLine(name: string, { settings, counts, waiting, totals }: PoolStats): PoolLine {
  return {
    name,
    ...counts,
    waiting,
    settings: {
      strategy: settings.strategy,
      max_uses: settings.maxUses,
      max_age_seconds: settings.maxAgeMs / 1000,
      cooldown_seconds: settings.cooldownMs / 1000,
      retire_at_score: settings.retireAtScore,
      max_payload_bytes: settings.maxPayloadBytes,
      keep_retired_seconds: settings.keepRetiredMs / 1000,
      keep_retired_count: settings.keepRetiredCount,
    },
    totals: {
      put: totals.put,
      claimed: totals.claimed,
      released: totals.released,
      expired: totals.expired,
      retired: totals.retired,
      removed: totals.removed,
      leases_expired: totals.leasesExpired,
    },
  };
}

export function renderPools(lines: readonly PoolLine[], now: number, paintTitle: Paint): string {
  if (lines.length === 0) return "There are no pools yet.\n";
  const columns: readonly Column<PoolLine>[] = [
    { title: "POOL", text: ({ name }) => name },
    ...ITEM_STATES.map((state): Column<PoolLine> => ({
      title: state.toUpperCase(),
      align: "right",
      text: (line) => String(line[state]),
    })),
    { title: "WAITING", align: "right", text: ({ waiting }) => String(waiting.length) },
    {
      title: "FIRST",
      text: ({ waiting: [first] }) =>
        first === undefined ? "-" : `${first.by}, for ${duration(now - first.since)}`,
    },
  ];
  return `${renderTable(lines, columns, paintTitle)}\n`;
}

/** An item in `--json`. Points in time are Unix milliseconds of the store. */
export function itemLine(item: ItemRecord): object {
  return {
    id: item.id,
    state: item.state,
    payload: jsonOr(item.payload),
    tags: jsonOr(item.tagsJson),
    uses: item.uses,
    score: item.score,
    put_at: item.putAt,
    expires_at: item.expiresAt,
    last_used_at: item.lastUsedAt,
    holder: item.holder,
    cool_until: item.coolUntil,
    retired: item.retired,
  };
}

export function renderItems(items: readonly ItemRecord[], now: number, paintTitle: Paint): string {
  if (items.length === 0) return "There are no such items.\n";
  const columns: readonly Column<ItemRecord>[] = [
    { title: "ID", text: ({ id }) => id },
    { title: "STATE", text: ({ state }) => state },
    { title: "TAGS", text: ({ tagsJson }) => tagsText(tagsJson) },
    { title: "USES", align: "right", text: ({ uses }) => String(uses) },
    { title: "SCORE", align: "right", text: ({ score }) => String(score) },
    { title: "AGE", align: "right", text: ({ putAt }) => duration(now - putAt) },
    { title: "WHAT", text: (item) => escapeControls(whatOf(item, now)) },
  ];
  return `${renderTable(items, columns, paintTitle)}\n`;
}

/** Why it is in its state, and for how long. */
function whatOf({ holder, coolUntil, retired, expiresAt }: ItemRecord, now: number): string {
  if (holder !== null)
    return `${holder.by}, for ${duration(now - holder.since)}, ${duration(holder.until - now)} left`;
  if (retired !== null)
    return `${retired.reason}, ${duration(now - retired.at)} ago${retired.note === "" ? "" : `: ${retired.note}`}`;
  if (coolUntil !== null) return `for ${duration(coolUntil - now)} more`;
  return expiresAt === null ? "" : `expires in ${duration(expiresAt - now)}`;
}

function tagsText(json: string): string {
  const tags = jsonOr(json);
  if (typeof tags !== "object" || tags === null) return json;
  return Object.entries(tags)
    .map(([tag, value]) => `${tag}=${Array.isArray(value) ? value.join("|") : String(value)}`)
    .join(" ");
}

/** As it lies there; what is no JSON at all (some other program wrote it) as a text. */
export function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
