/** How items, settings and what is asked for travel to the scripts of pools, and back. */
import type {
  ClaimedItem,
  ItemRecord,
  ItemState,
  ItemTags,
  NewItem,
  RetireReason,
} from "../../protocol/pool.ts";
import { ITEM_STATES } from "../../protocol/pool.ts";
import type { HolderChange, PoolSettings, PoolStats } from "../pool-store.ts";
import { pairs } from "./parts.ts";
import { longId, shapeOf, shortId, tagsJsonOf } from "./pool-compact.ts";

/** What is not well-formed is sent as Redis would store it: both sides of a match are changed alike. */
const encoded = (text: string) => encodeURIComponent(Buffer.from(text).toString());

function valuesOf(tags: ItemTags): string[][] {
  return Object.entries(tags)
    .map(([name, values]) =>
      [...new Set(values)].map((value) => `${encoded(name)}=${encoded(value)}`).toSorted(),
    )
    .toSorted(([a = ""], [b = ""]) => (a < b ? -1 : 1));
}

/** Of an item: all its values, parted by spaces. */
export function wireOfTags(tags: ItemTags): string {
  return valuesOf(tags).flat().join(" ");
}

/** Whoever claims does so again and again with the same `where`. */
const WHERES = new WeakMap<ItemTags, string>();

/** Of a search: for each tag its values, parted by commas. Equal ones have equal texts. */
export function wireOfWhere(where: ItemTags): string {
  const known = WHERES.get(where);
  if (known !== undefined) return known;
  const text = valuesOf(where)
    .map((values) => values.join(","))
    .join(" ");
  WHERES.set(where, text);
  return text;
}

export function whereOf(text: string): ItemTags {
  const where: [string, string[]][] = [];
  for (const group of text.split(" ").filter((one) => one !== "")) {
    const values = group
      .split(",")
      .map((value) => value.split("=").map(decodeURIComponent) as [string, string]);
    where.push([values[0]?.[0] ?? "", values.map(([, value]) => value).toSorted()]);
  }
  return Object.fromEntries(where);
}

/** What `pool-put.lua` takes. */
export function wireOfItems(items: readonly NewItem[]): string[] {
  return items.flatMap(({ id, payload, tags, tagsJson, ttlMs }) => {
    const wire = wireOfTags(tags);
    return [shortId(id), payload, wire, shapeOf(tagsJson, wire), String(Math.ceil(ttlMs))];
  });
}

/** What `pool-change.lua` takes. */
export function wireOfChange(change: HolderChange): Record<"what" | "value" | "tags" | "tagsJson", string> {
  const given = (text: string | undefined) => (text === undefined ? "" : `=${text}`);
  const wire = { what: change.do, value: "", tags: "", tagsJson: "" };
  switch (change.do) {
    case "cool":
      return { ...wire, value: String(Math.ceil(change.ms)) };
    case "extend":
      return { ...wire, value: String(Math.round(change.holdMs)) };
    case "retire":
      return { ...wire, value: change.note };
    case "report":
      return { ...wire, value: change.what === "ok" ? "1" : "-1" };
    case "release":
      return wire;
    default: {
      const tags = change.tags === undefined ? undefined : wireOfTags(change.tags);
      const { tagsJson } = change;
      const shape = tagsJson === undefined || tags === undefined ? tagsJson : shapeOf(tagsJson, tags);
      return { ...wire, value: given(change.payload), tags: given(tags), tagsJson: given(shape) };
    }
  }
}

export type ClaimedReply = [
  id: string,
  payload: string,
  tagsJson: string,
  token: string,
  uses: number,
  score: number,
  until: number,
];

export function claimedOf([id, payload, tagsJson, token, uses, score, until]: ClaimedReply): ClaimedItem {
  return { id: longId(id), payload, tagsJson: tagsJsonOf(tagsJson), token, uses, score, until };
}

/** See `pool-record.lua`. */
export type ItemReply = [
  id: string,
  state: ItemState,
  payload: string,
  tagsJson: string,
  uses: number,
  score: number,
  putAt: number,
  expiresAt: number,
  lastUsedAt: string,
  by: string,
  since: number | "",
  until: number | "",
  coolUntil: number | "",
  reason: RetireReason | "",
  retiredAt: string,
  note: string,
];

export function itemOf(reply: ItemReply): ItemRecord {
  const [id, state, payload, tagsJson, uses, score, putAt, expiresAt, lastUsedAt, by, ...rest] = reply;
  const [since, until, coolUntil, reason, retiredAt, note] = rest;
  return {
    id: longId(id),
    state,
    payload,
    tagsJson: tagsJsonOf(tagsJson),
    uses,
    score,
    putAt,
    expiresAt: expiresAt === 0 ? null : expiresAt,
    lastUsedAt: lastUsedAt === "" ? null : Number(lastUsedAt),
    holder: since === "" || until === "" ? null : { by, since, until },
    coolUntil: coolUntil === "" ? null : coolUntil,
    retired: reason === "" ? null : { reason, note, at: Number(retiredAt) },
  };
}

export function countsOf(counts: readonly number[]): Record<ItemState, number> {
  return Object.fromEntries(ITEM_STATES.map((state, i) => [state, counts[i] ?? 0])) as Record<
    ItemState,
    number
  >;
}

type WaiterReply = [by: string, where: string, n: string, since: string];
export type StatsReply =
  | []
  | [settings: string[], counts: number[], waiting: WaiterReply[], totals: number[]];

const TOTALS = ["put", "claimed", "released", "expired", "retired", "removed", "leasesExpired"] as const;

export function statsOf([flat, counts, waiting, totals]: Exclude<StatsReply, []>): PoolStats {
  const settings = Object.fromEntries(pairs(flat));
  return {
    settings: settingsOf(SETTING_NAMES.map((name) => settings[name] as string)),
    counts: countsOf(counts),
    waiting: waiting.map(([by, where, n, since]) => ({
      by,
      where: whereOf(where),
      n: Number(n),
      since: Number(since),
    })),
    totals: Object.fromEntries(TOTALS.map((name, i) => [name, totals[i]])) as PoolStats["totals"],
  };
}

const NUMBERS = [
  "maxUses",
  "maxAgeMs",
  "cooldownMs",
  "maxPayloadBytes",
  "keepRetiredMs",
  "keepRetiredCount",
] as const;
const SETTING_NAMES = ["strategy", "retireAtScore", ...NUMBERS] as const;

export function wireOfSettings(settings: PoolSettings): string[] {
  return SETTING_NAMES.flatMap((name) => {
    const value = settings[name];
    return [name, typeof value === "number" ? String(Math.round(value)) : (value ?? "")];
  });
}

/** From the values in the order in which `wireOfSettings` gives them. */
export function settingsOf(values: readonly string[]): PoolSettings {
  const [strategy, score, ...numbers] = values;
  return {
    strategy: strategy as PoolSettings["strategy"],
    retireAtScore: score === "" ? null : Number(score),
    ...(Object.fromEntries(NUMBERS.map((name, i) => [name, Number(numbers[i])])) as Record<
      (typeof NUMBERS)[number],
      number
    >),
  };
}
