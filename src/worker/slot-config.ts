// What a slot knows of its config: what its code has, what it was offered, and what came of that. Pure; times are monotonic.
import { backoffMs } from "../internal/backoff.ts";
import type { ConfigAnswer, FromHost } from "../protocol/host.ts";
import type { SlotStatus } from "../protocol/status.ts";
import { blockKeyOf, type ConfigOffer, type WantedSlot } from "./reconcile.ts";

/** An offer that was refused is made again after 1 s, 2 s, … up to a minute: what was missing may be there by then. */
const RETRY = { baseMs: 1000, capMs: 60_000, jitter: 0.2 };
/** One that is not answered is made again after so long. */
const ANSWER_MS = 30_000;

/** So many offers without an answer are remembered: a process works on one, which may take it long, and on none but the last after it. */
const MAX_UNANSWERED = 50;

/** A config with what tells it from others. */
export type KnownConfig = Pick<WantedSlot, "config" | "configKey" | "generation">;

export interface SlotConfig {
  /** What its code has; null before its first run. */
  applied: KnownConfig | null;
  /** The last one that was sent to its process. */
  sent: KnownConfig | null;
  offer: ConfigOffer | null;
  /** All offers to its run that may still be answered, oldest first: a process may be at one of them while others are made. */
  unanswered: readonly (KnownConfig & { host: string })[];
  /** Why its code goes on with an older config than the one desired. */
  rejected: (ConfigAnswer & { reason: string; times: number; version: string }) | null;
}

export const NO_CONFIG: SlotConfig = {
  applied: null,
  sent: null,
  offer: null,
  unanswered: [],
  rejected: null,
};

/**
 * The config to start a run with: the desired one, or where this very code has refused that, the one it had. Whether that is so stands in
 * its `configKey`.
 */
export function startWith(slot: WantedSlot, { rejected, applied }: SlotConfig): WantedSlot {
  const refused = rejected?.version === slot.version && rejected.configKey === slot.configKey;
  return refused && applied !== null ? { ...slot, ...applied } : slot;
}

export function started(known: SlotConfig, { config, configKey, generation }: WantedSlot): SlotConfig {
  const applied = { config, configKey, generation };
  return { ...known, applied, sent: applied, offer: null, unanswered: [] };
}

export function offered(known: SlotConfig, slot: WantedSlot, host: string, now: number): SlotConfig {
  const { config, configKey, generation, version } = slot;
  const offer: ConfigOffer = { configKey, host, version, state: "sent", retryAt: now + ANSWER_MS };
  const sent = { config, configKey, generation };
  const unanswered = [...known.unanswered, { ...sent, host }].slice(-MAX_UNANSWERED);
  return { ...known, sent, offer, unanswered };
}

/** What a process says of an offer. */
export type ConfigMessage = Extract<FromHost, { type: "config-applied" | "config-fits" | "config-rejected" }>;

export function answered(
  before: SlotConfig,
  message: ConfigMessage,
  /** Who says it, and when. */
  at: { host: string; now: number },
): SlotConfig {
  const { slotId, configKey, generation } = message;
  const answer = { slotId, configKey, generation };
  const about = before.unanswered.findIndex((one) => one.host === at.host && one.configKey === configKey);
  // A process answers in order: what it was offered before this one it has skipped.
  const unanswered = before.unanswered.filter((one, index) => one.host !== at.host || index > about);
  const known = { ...before, unanswered };
  if (message.type === "config-applied") return applied(known, answer, before.unanswered[about]);
  if (known.offer?.host !== at.host || known.offer.configKey !== configKey) return known;
  if (message.type === "config-fits") return fits(known, known.offer, answer);
  return refused(known, known.offer, { ...answer, reason: message.reason }, at.now);
}

/**
 * The run has taken it live: what was offered under that key, whatever has been offered since. Where nobody remembers that, it is not known
 * what the run has: then it is offered anew what it should have.
 */
function applied(
  known: SlotConfig,
  { configKey, generation }: ConfigAnswer,
  taken: KnownConfig | undefined,
): SlotConfig {
  const { offer, rejected } = known;
  return {
    ...known,
    applied: taken === undefined ? null : { config: taken.config, configKey, generation },
    offer: offer?.configKey === configKey ? null : offer,
    rejected: rejected?.configKey === configKey ? null : rejected,
  };
}

/** The schema accepts it: the slot can be restarted with it. */
function fits(known: SlotConfig, offer: ConfigOffer, { configKey }: ConfigAnswer): SlotConfig {
  const rejected = known.rejected?.configKey === configKey ? null : known.rejected;
  return { ...known, offer: { ...offer, state: "fits" }, rejected };
}

function refused(
  known: SlotConfig,
  offer: ConfigOffer,
  answer: ConfigAnswer & { reason: string },
  now: number,
): SlotConfig {
  const { rejected } = known;
  const { version } = offer;
  const same = rejected?.configKey === answer.configKey && rejected.version === version;
  const times = same ? rejected.times + 1 : 1;
  return {
    ...known,
    offer: { ...offer, state: "refused", retryAt: now + backoffMs(times, RETRY) },
    rejected: { ...answer, version, times },
  };
}

/** That process is gone, and does not answer any more. */
export function hostEnded(known: SlotConfig, host: string): SlotConfig {
  if (known.offer?.host !== host && !known.unanswered.some((one) => one.host === host)) return known;
  const offer = known.offer?.host === host ? null : known.offer;
  return { ...known, offer, unanswered: known.unanswered.filter((one) => one.host !== host) };
}

/** What it has is what it should have: that counts for the present generation, whatever was offered or refused before. */
export function agreed(known: SlotConfig, slot: WantedSlot): SlotConfig {
  const { applied: has } = known;
  if (has?.generation === slot.generation && known.offer === null && known.rejected === null) return known;
  const { config, configKey, generation } = slot;
  const now = { config, configKey, generation };
  return { ...known, applied: now, sent: now, offer: null, rejected: null };
}

/** For the status: what was sent, what is applied, and what was refused. */
export function shown({
  applied: has,
  sent,
  rejected,
}: SlotConfig): Pick<SlotStatus, "generation" | "sentGeneration" | "rejected"> {
  return {
    generation: has?.generation ?? 0,
    sentGeneration: sent?.generation ?? 0,
    rejected: rejected && { generation: rejected.generation, reason: rejected.reason },
  };
}

/** What tells a run that cannot begin: it is not tried again with the same. */
export function blockKey(slot: Pick<WantedSlot, "build">, { applied: has }: SlotConfig): string {
  return blockKeyOf({ build: slot.build, configKey: has?.configKey ?? "" });
}
