/**
 * Which worker should run which slot. Pure and deterministic.
 *
 * - Every slot goes to at most one worker, which is live, knows the automation, bears the labels that it asks for there and has room.
 * - A cordoned worker keeps what it has and gets nothing new; one that is to drain has nothing.
 * - A slot stays where it is unless its worker is gone, or a move makes the fleet more even or makes room for one that waits. For
 *   evenness it moves only while the difference between two workers is two or more, so nothing swings back and forth.
 * - As many slots have a worker as can have one at all, while cordoned workers keep what they have.
 */
import { byName } from "../internal/by-name.ts";
import { canonicalJson } from "../internal/canonical.ts";
import type { Assignments, DesiredAutomation } from "../protocol/spec.ts";
import { workerState, type WorkerRecord } from "../protocol/status.ts";
import { byShare, fits, type Homeless, type Load, move, put, share } from "./load.ts";
import { makeRoom } from "./make-room.ts";

export type PlaceableWorker = Pick<
  WorkerRecord,
  "id" | "capacity" | "automations" | "draining" | "expiresAt"
> &
  Partial<Pick<WorkerRecord, "labels" | "known" | "wish">>;

export interface PlaceInput {
  desired: Readonly<Record<string, Pick<DesiredAutomation, "slots" | "paused">>>;
  workers: readonly PlaceableWorker[];
  current: Assignments;
}

export function place({ desired, workers, current }: PlaceInput, now: number): Assignments {
  const loads = workers
    .filter((worker) => workerState(worker, now) === "online" && worker.wish?.drain === undefined)
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map((worker): Load => ({
      id: worker.id,
      capacity: worker.capacity,
      suits: new Set(worker.automations.filter((name) => lacking(worker, name).length === 0)),
      cordoned: isCordoned(worker),
      total: 0,
      of: new Map(),
    }));
  const byId = new Map(loads.map((load) => [load.id, load]));
  const names = Object.keys(desired)
    .filter((name) => desired[name]?.paused === false)
    .toSorted();

  const ranOn = ({ name, slotId }: Homeless) =>
    Object.hasOwn(current, name) ? current[name]?.[slotId] : undefined;
  let homeless: Homeless[] = [];
  for (const name of names) {
    for (let slotId = 0; slotId < (desired[name]?.slots ?? 0); slotId++) {
      const load = byId.get(ranOn({ name, slotId }) ?? "");
      if (load !== undefined && fits(load, name)) put(load, { name, slotId });
      else homeless.push({ name, slotId });
    }
  }
  // Again until nothing changes: a move can make room for a slot that had found none. It comes to an end, because each round
  // leaves fewer slots without a worker, or else an automation's spread, or else the totals, more even than before.
  for (let before = ""; before !== positions(loads);) {
    before = positions(loads);
    homeless = makeRoom(loads, house(loads, homeless), ranOn);
    for (const name of names) even(loads, name, (load) => share(load, name));
    for (const name of names) even(loads, name, (load) => load.total, true);
  }
  return assignmentsOf(loads);
}

/** Gives each slot to the worker that knows it, has room and runs the fewest; answers those for which there is none. */
function house(loads: readonly Load[], homeless: readonly Homeless[]): Homeless[] {
  return homeless.filter((slot) => {
    const load = loads
      .filter((candidate) => !candidate.cordoned && fits(candidate, slot.name))
      .toSorted(byShare(slot.name))[0];
    if (load !== undefined) put(load, slot);
    return load === undefined;
  });
}

/** Equal when every slot is where it was. */
function positions(loads: readonly Load[]): string {
  return canonicalJson(assignmentsOf(loads));
}

/**
 * Moves slots of `name` from the fullest to the emptiest worker, by `measure`, while they differ by two or more. With
 * `keepSpread` only where that does not make this automation's own spread worse.
 */
function even(
  loads: readonly Load[],
  name: string,
  measure: (load: Load) => number,
  keepSpread = false,
): void {
  const candidates = loads.filter((load) => !load.cordoned && load.suits.has(name));
  for (;;) {
    const from = candidates
      .filter((load) => share(load, name) > 0)
      .toSorted((a, b) => measure(b) - measure(a) || (a.id < b.id ? -1 : 1))[0];
    const to = candidates
      .filter((load) => fits(load, name))
      .toSorted((a, b) => measure(a) - measure(b) || (a.id < b.id ? -1 : 1))[0];
    if (from === undefined || to === undefined || measure(from) - measure(to) < 2) return;
    if (keepSpread && share(from, name) <= share(to, name)) return;
    move(from, to, { name, slotId: Math.max(...(from.of.get(name) ?? [])) });
  }
}

function assignmentsOf(loads: readonly Load[]): Assignments {
  const out = byName<Record<string, string>>();
  for (const load of loads) {
    for (const [name, slots] of load.of) for (const slotId of slots) (out[name] ??= {})[slotId] = load.id;
  }
  return out;
}

/** Labels that `name` asks for on this worker and that it does not bear; none where it knows nothing of `name`. */
export function lacking(
  { labels = {}, known = {} }: Pick<PlaceableWorker, "labels" | "known">,
  name: string,
): [label: string, value: string][] {
  const asked = Object.hasOwn(known, name) ? (known[name]?.labels ?? {}) : {};
  return Object.entries(asked).filter(([label, value]) => labels[label] !== value);
}

/** Whether nothing new is placed on it. */
export function isCordoned({ wish }: Pick<PlaceableWorker, "wish">): boolean {
  return wish?.cordon !== undefined;
}

/** So many workers are named with the labels that they lack. */
const NAMED = 5;

/** Why a slot of `name` has no worker, in words. */
export function whyUnplaced(
  name: string,
  paused: boolean,
  workers: readonly PlaceableWorker[],
  now: number,
): string {
  if (paused) return "paused";
  const live = workers.filter((worker) => workerState(worker, now) !== "offline");
  if (live.length === 0) return "no worker is online";
  const knowing = live.filter((worker) => worker.automations.includes(name));
  if (knowing.length === 0)
    return live.length === 1
      ? `the only live worker does not know "${name}"`
      : `none of the ${live.length} live workers knows "${name}"`;
  const suiting = knowing.filter((worker) => lacking(worker, name).length === 0);
  if (suiting.length === 0) return whyNoneSuits(name, knowing);
  const whose = `that know "${name}"${suiting.length < knowing.length ? " and bear its labels" : ""}`;
  const leaving = suiting.filter((worker) => worker.draining || worker.wish?.drain !== undefined);
  if (leaving.length === suiting.length) return `all workers ${whose} are draining`;
  const open = suiting.filter((worker) => !leaving.includes(worker) && !isCordoned(worker));
  if (open.length > 0) {
    const cordoned = suiting.length - leaving.length - open.length;
    const states = [
      "at their capacity",
      ...(cordoned > 0 ? ["cordoned"] : []),
      ...(leaving.length > 0 ? ["draining"] : []),
    ];
    return `no room: the workers ${whose} are ${states.join(", ").replace(/, (\w+)$/, " or $1")}`;
  }
  return `all workers ${whose} are ${leaving.length === 0 ? "cordoned" : "cordoned or draining"}`;
}

function whyNoneSuits(name: string, knowing: readonly PlaceableWorker[]): string {
  const named = knowing.slice(0, NAMED).map((worker) => {
    const missing = lacking(worker, name).map(([label, value]) => {
      const has = worker.labels?.[label];
      return `${label}=${value} (it has ${has === undefined ? `no ${label}` : `${label}=${has}`})`;
    });
    return `${worker.id} lacks ${missing.join(" and ")}`;
  });
  const more = knowing.length > NAMED ? `, and ${knowing.length - NAMED} more` : "";
  return `no worker bears the labels that "${name}" asks for: ${named.join(", ")}${more}`;
}
