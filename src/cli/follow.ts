// `--wait`: until what the workers report is what was asked for.
import { monotonicMs, sleep } from "../internal/timers.ts";
import type { Store } from "../store/store.ts";
import { CommandFailed } from "./exit.ts";
import { PatientView } from "./patient-view.ts";
import { type AutomationLine, automationLine, type SlotLine } from "../control/status-report.ts";

const LOOK_MS = 200;
/** How many slots that do not follow are named. */
const NAMED = 5;

export interface Goal {
  name: string;
  /** Only this slot counts; default all. */
  slotId: number | undefined;
  /** Its run must have begun under this generation or a later one; undefined: any run will do. */
  freshSince: number | undefined;
  /** A config is waited for, not a fresh process: its code must have that of this generation or a later one. */
  configSince?: number;
}

/**
 * Waits until the slots have followed and says so in words, over any absence of the store. After `waitSeconds` it throws `CommandFailed` with
 * what is missing, or, where the store is away, `FLEET_STORE_UNAVAILABLE`.
 */
export async function untilFollowed(store: Store, goal: Goal, waitSeconds: number): Promise<string> {
  const until = monotonicMs() + waitSeconds * 1000;
  const fleet = new PatientView(store.registry);
  for (;;) {
    const view = await fleet.look();
    if (view === undefined) {
      const left = until - monotonicMs();
      if (left <= 0) throw fleet.away(`the change stands, but after ${waitSeconds} s`);
      await sleep(Math.min(LOOK_MS, left));
      continue;
    }
    const line = automationLine(goal.name, view);
    const missing = line.slot_list.filter((slot) => !follows(slot, line, goal));
    if (missing.length === 0) return arrived(line, goal);
    const left = until - monotonicMs();
    if (left <= 0) throw late(goal.name, missing, waitSeconds);
    await sleep(Math.min(LOOK_MS, left));
  }
}

/** Whether the slot is where it should be: running, or, when paused or scaled away, not there. */
export function follows(slot: SlotLine, line: AutomationLine, goal: Goal): boolean {
  const { slotId, freshSince = goal.configSince } = goal;
  if (slotId !== undefined && slot.slot_id !== slotId) return true;
  if (line.paused) return slot.state === "waiting";
  if (slot.slot_id >= (line.slots ?? 0)) return false;
  return slot.state === "running" && (freshSince === undefined || (slot.generation ?? 0) >= freshSince);
}

function arrived({ paused, slots }: AutomationLine, { slotId, freshSince, configSince }: Goal): string {
  if (paused || slots === 0) return "No slot runs any more.";
  if (configSince !== undefined)
    return slots === 1 ? "Its slot has its config." : `All ${slots} slots have their config.`;
  const where =
    freshSince === undefined ? "" : slotId === undefined ? " in fresh processes" : " in a fresh process";
  if (slotId !== undefined) return `Slot ${slotId} runs${where}.`;
  return slots === 1 ? `Its slot runs${where}.` : `All ${slots} slots run${where}.`;
}

function late(name: string, missing: readonly SlotLine[], waitSeconds: number): CommandFailed {
  const named = missing.slice(0, NAMED).map(({ slot_id: id, state, reason, rejected }) => {
    const words = reason ?? (rejected && `it refused the config: ${rejected.reason}`);
    const why = words === null ? "" : ` (${words.split("\n", 1)[0]})`;
    return `slot ${id}: ${state}${why}`;
  });
  if (missing.length > NAMED) named.push(`and ${missing.length - NAMED} more`);
  const remedy = missing.some(({ rejected }) => rejected !== null)
    ? `"fleet config rollback ${name} GENERATION" takes an earlier config, of those in "fleet config history ${name}"`
    : `"fleet explain ${name}" says why`;
  return new CommandFailed(
    "FLEET_NOT_FOLLOWED",
    `the change stands, but after ${waitSeconds} s not all slots have followed: ${named.join("; ")}. ${remedy}`,
  );
}
