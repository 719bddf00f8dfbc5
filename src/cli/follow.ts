// `--wait`: until what the workers report is what was asked for.
import { monotonicMs, sleep } from "../internal/timers.ts";
import type { Store } from "../store/store.ts";
import { CommandFailed } from "./exit.ts";
import { type AutomationLine, automationLine, type SlotLine } from "./status-report.ts";

const LOOK_MS = 200;
/** How many slots that do not follow are named. */
const NAMED = 5;

export interface Goal {
  name: string;
  /** Only this slot counts; default all. */
  slotId: number | undefined;
  /** Its run must have begun under this generation or a later one; undefined: any run will do. */
  freshSince: number | undefined;
}

/** Waits until the slots have followed and says so in words. Throws `CommandFailed` with what is missing after `waitSeconds`. */
export async function untilFollowed(store: Store, goal: Goal, waitSeconds: number): Promise<string> {
  const until = monotonicMs() + waitSeconds * 1000;
  for (;;) {
    const view = await store.registry.view();
    const line = automationLine(goal.name, view);
    const missing = line.slot_list.filter((slot) => !follows(slot, line, goal));
    if (missing.length === 0) return arrived(line, goal);
    const left = until - monotonicMs();
    if (left <= 0) throw late(missing, waitSeconds);
    await sleep(Math.min(LOOK_MS, left));
  }
}

/** Whether the slot is where it should be: running, or, when paused or scaled away, not there. */
export function follows(slot: SlotLine, line: AutomationLine, { slotId, freshSince }: Goal): boolean {
  if (slotId !== undefined && slot.slot_id !== slotId) return true;
  if (line.paused) return slot.state === "waiting";
  if (slot.slot_id >= (line.slots ?? 0)) return false;
  return slot.state === "running" && (freshSince === undefined || (slot.generation ?? 0) >= freshSince);
}

function arrived({ paused, slots }: AutomationLine, { slotId, freshSince }: Goal): string {
  if (paused || slots === 0) return "No slot runs any more.";
  const where =
    freshSince === undefined ? "" : slotId === undefined ? " in fresh processes" : " in a fresh process";
  if (slotId !== undefined) return `Slot ${slotId} runs${where}.`;
  return slots === 1 ? `Its slot runs${where}.` : `All ${slots} slots run${where}.`;
}

function late(missing: readonly SlotLine[], waitSeconds: number): CommandFailed {
  const named = missing.slice(0, NAMED).map(({ slot_id: id, state, reason }) => {
    const why = reason === null ? "" : ` (${reason.split("\n", 1)[0]})`;
    return `slot ${id}: ${state}${why}`;
  });
  if (missing.length > NAMED) named.push(`and ${missing.length - NAMED} more`);
  return new CommandFailed(
    "FLEET_NOT_FOLLOWED",
    `the change stands, but after ${waitSeconds} s not all slots have followed: ${named.join("; ")}`,
  );
}
