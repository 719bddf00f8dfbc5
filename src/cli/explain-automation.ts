// Why an automation, or one of its slots, does not do more than it does: in words. Pure.
import type { QueueStats } from "../store/queue-store.ts";
import type { AutomationLine, SlotLine } from "../control/status-report.ts";
import { duration, firstLine } from "./table.ts";

/** One finding: a code for programs, a sentence for people. */
export interface Finding {
  code: string;
  message: string;
}

/** What keeps an automation as a whole from running anything; undefined while at least one slot runs. */
export function whyIdle({
  name,
  slots,
  paused,
  running,
  slot_list: list,
}: AutomationLine): Finding | undefined {
  if (slots === null)
    return {
      code: "not-deployed",
      message: `no worker has ever run "${name}" here: start one that has it among its automations`,
    };
  if (paused) return { code: "paused", message: `"${name}" is paused; "fleet resume ${name}" runs it again` };
  if (slots === 0)
    return { code: "no-slots", message: `"${name}" has no slots; "fleet scale ${name} 1" gives it one` };
  if (running > 0) return undefined;
  const [first] = list.filter(({ reason }) => reason !== null);
  const why =
    first === undefined
      ? "they are about to start"
      : `slot ${first.slot_id} is ${first.state}: ${first.reason}`;
  return { code: "no-slot-runs", message: `none of its ${count(slots, "slot")} runs: ${why}` };
}

export function explainSlot(name: string, slot: SlotLine): Finding[] {
  const {
    slot_id: id,
    state,
    worker,
    in_state_seconds: seconds,
    reason,
    last_progress_seconds: progress,
  } = slot;
  const on = worker === null ? "" : ` on ${worker}`;
  const since = seconds === null ? "" : ` for ${duration(seconds * 1000)}`;
  const found: Finding[] = [
    { code: state, message: `${name}/${id} is ${state}${on}${since}${reason === null ? "" : `: ${reason}`}` },
  ];
  if (state === "running" && progress !== null)
    found.push({
      code: slot.waiting ? "waits" : "progress",
      message: slot.waiting
        ? "it waits on purpose"
        : `its last sign of progress was ${duration(progress * 1000)} ago`,
    });
  if (slot.last_error !== null)
    found.push({ code: "last-error", message: `its last error: ${firstLine(slot.last_error)}` });
  if (slot.circuit !== null)
    found.push({ code: "recycle", message: `"fleet recycle ${name} --slot ${id}" closes its circuit` });
  return found;
}

export function explainAutomation(
  line: AutomationLine,
  stats: QueueStats | undefined,
  now: number,
  permits?: Finding,
): Finding[] {
  const { name, slots, running, slot_list: list } = line;
  const idle = whyIdle(line);
  const found: Finding[] = [];
  if (slots !== null) found.push({ code: "slots", message: `${running} of ${count(slots, "slot")} run` });
  if (idle !== undefined) found.push(idle);
  // What holds for all of them is said already.
  if (idle === undefined || idle.code === "no-slot-runs")
    for (const slot of list.filter(({ state }) => state !== "running").slice(0, 20))
      found.push({
        code: slot.state,
        message: `slot ${slot.slot_id} is ${slot.state}${slot.reason === null ? "" : `: ${slot.reason}`}`,
      });
  if (stats !== undefined) found.push(...explainQueue(name, stats, running, now, permits));
  return found;
}

function explainQueue(
  name: string,
  stats: QueueStats,
  running: number,
  now: number,
  permits: Finding | undefined,
): Finding[] {
  const { counts, settings, oldestWaitingAt, busyKeys } = stats;
  const oldest =
    oldestWaitingAt === null ? "" : ` (the oldest was submitted ${duration(now - oldestWaitingAt)} ago)`;
  const found: Finding[] = [
    {
      code: "queue",
      message: `${count(counts.waiting, "task")} ${counts.waiting === 1 ? "waits" : "wait"}${oldest}, ${counts.scheduled} ${counts.scheduled === 1 ? "is" : "are"} not due yet, ${counts.active} ${counts.active === 1 ? "runs" : "run"}`,
    },
  ];
  const limit = atLimit(stats);
  if (counts.waiting > 0 && limit !== undefined) found.push(limit);
  else if (counts.waiting > 0 && running > 0 && counts.active >= running)
    found.push({
      code: "slots-busy",
      message: `${running === 1 ? "its slot is" : `all ${running} slots are`} busy`,
    });
  if (counts.waiting > 0 && permits !== undefined) found.push(permits);
  for (const { key, active, waiting } of busyKeys.slice(0, 20))
    found.push({
      code: "key-busy",
      message: `key "${key}" is at its limit (keyConcurrency ${settings.keyConcurrency}): ${active} ${active === 1 ? "runs" : "run"}, ${waiting} ${waiting === 1 ? "waits" : "wait"}`,
    });
  if (counts.failed > 0)
    found.push({
      code: "dead-letter",
      message: `${count(counts.failed, "task")} in the dead letter; "fleet task ls ${name} --state failed" shows them`,
    });
  return found;
}

/** The queue's own limit on tasks that run, where it is reached. */
export function atLimit({ settings: { concurrency }, counts }: QueueStats): Finding | undefined {
  if (concurrency === 0 || counts.active < concurrency) return undefined;
  return {
    code: "concurrency",
    message: `as many tasks run as the queue allows at once (concurrency ${concurrency})`,
  };
}

export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
