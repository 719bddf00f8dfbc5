// What a change of desired state did and what follows from it, in words. Pure.
import { place, whyUnplaced } from "../control/place.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import type { FleetView } from "../store/store.ts";
import { automationLine, type Health } from "../control/status-report.ts";

export type Verb = "scale" | "pause" | "resume" | "recycle";

/** A change that was asked for, and what is known of it. */
export interface Steered {
  verb: Verb;
  name: string;
  slotId: number | undefined;
  desired: DesiredAutomation;
  /** Undefined when it stood so already and nothing was written. */
  before: DesiredAutomation | undefined;
  /** Slots whose open circuit was closed. */
  closed: number[];
  /** How many of its slots find no worker, and why. */
  unplaced: number;
  why: string | null;
}

interface Facts extends Omit<Steered, "closed" | "unplaced" | "why"> {
  /** The fleet after the change; its workers may not have followed yet. */
  view: FleetView;
  health: Health;
}

export function steered({ view, health, ...facts }: Facts): Steered {
  const { verb, name, slotId, desired, before } = facts;
  const then =
    before && automationLine(name, { ...view, desired: { ...view.desired, [name]: before } }, health);
  const closed = (verb === "recycle" && then ? then.slot_list : [])
    .filter((slot) => slot.circuit !== null && (slotId === undefined || slot.slot_id === slotId))
    .map((slot) => slot.slot_id);
  const current = { ...view.desired, [name]: desired };
  const placed = place({ desired: current, workers: view.workers, current: view.assignments }, view.now);
  const unplaced = desired.paused ? 0 : desired.slots - Object.keys(placed[name] ?? {}).length;
  const why = unplaced > 0 ? whyUnplaced(name, false, view.workers, view.now) : null;
  return { ...facts, closed, unplaced, why };
}

/** What happened, then what will happen. */
export function wordsOf(result: Steered): string {
  const { before, desired } = result;
  if (before === undefined) return `${UNCHANGED[result.verb](result)}; nothing was changed.`;
  return [
    `${DONE[result.verb](result, before)} (generation ${desired.generation}).`,
    ...outlook(result, before),
  ].join(" ");
}

const UNCHANGED: Record<Verb, (result: Steered) => string> = {
  scale: ({ name, desired }) => `"${name}" has ${slots(desired.slots)} already`,
  pause: ({ name }) => `"${name}" is paused already`,
  resume: ({ name }) => `"${name}" is not paused`,
  recycle: ({ name }) => `"${name}" has no slots`,
};

const DONE: Record<Verb, (result: Steered, before: DesiredAutomation) => string> = {
  scale: ({ name, desired }, before) => `"${name}" goes from ${before.slots} to ${slots(desired.slots)}`,
  pause: ({ name, desired }) => `"${name}" is paused; its ${slots(desired.slots)} will end`,
  resume: ({ name, desired }) => `"${name}" is resumed; its ${slots(desired.slots)} will start`,
  recycle: ({ name, slotId, desired }) =>
    slotId === undefined
      ? desired.slots === 1
        ? `"${name}" is recycled; its slot will move to a fresh process`
        : `"${name}" is recycled; its ${slots(desired.slots)} will move to fresh processes, one by one`
      : `Slot ${slotId} of "${name}" is recycled; it will move to a fresh process`,
};

function outlook(
  { verb, name, desired, closed, unplaced, why }: Steered,
  before: DesiredAutomation,
): string[] {
  const said: string[] = [];
  if (closed.length > 0)
    said.push(
      `The open circuit of ${list(closed)} is closed: ${closed.length === 1 ? "it starts" : "they start"} again.`,
    );
  if (verb === "pause") return [...said, `"fleet resume ${name}" starts them again.`];
  if (desired.paused) return [...said, `It is paused: nothing runs until "fleet resume ${name}".`];
  if (verb === "scale" && desired.slots < before.slots)
    said.push(`S${list(range(desired.slots, before.slots)).slice(1)} will end.`);
  if (verb === "scale" && desired.slots > before.slots)
    said.push(`S${list(range(before.slots, desired.slots)).slice(1)} will start.`);
  if (unplaced > 0) said.push(`${unplaced} of ${slots(desired.slots)} must wait: ${why}.`);
  return said;
}

function slots(count: number): string {
  return count === 1 ? "1 slot" : `${count} slots`;
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** `slot 3`, `slots 3 and 4`, `slots 3 to 7`, `slots 1, 4, 6 and 3 more`. */
export function list(ids: readonly number[]): string {
  const [first = 0, last = 0] = [ids[0], ids.at(-1)];
  if (ids.length === 1) return `slot ${first}`;
  if (ids.length === 2) return `slots ${first} and ${last}`;
  if (last - first === ids.length - 1) return `slots ${first} to ${last}`;
  const more = ids.length > 8 ? ` and ${ids.length - 8} more` : "";
  return `slots ${ids.slice(0, 8).join(", ")}${more}`;
}
