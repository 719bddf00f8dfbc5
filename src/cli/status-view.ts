import { escapeControls } from "../internal/redact.ts";
import type { AutomationLine, SlotLine, StatusReport, WorkerLine } from "../control/status-report.ts";
import { edgeWords } from "../control/contract-check.ts";
import { damageWords, unreadable } from "../control/damaged.ts";
import { versionWords } from "../control/drift.ts";
import { canaryWords, stoppedCanaryWords } from "./canary-words.ts";
import { drainWords } from "./drain-words.ts";
import { type Column, duration, firstLine, renderTable } from "./table.ts";

/** Mark-up, so that rendering needs no terminal. */
export interface Paint {
  bold: (text: string) => string;
  dim: (text: string) => string;
}

const WORKER_COLUMNS: readonly Column<WorkerLine>[] = [
  { title: "WORKER", text: ({ id }) => id },
  { title: "STATE", text: workerState },
  { title: "HOST", text: ({ host }) => host },
  { title: "PID", align: "right", text: ({ pid }) => String(pid) },
  { title: "LAST BEAT", align: "right", text: (line) => duration(line.last_beat_seconds * 1000) },
  { title: "SLOTS", align: "right", text: ({ slots, capacity }) => `${slots}/${capacity}` },
];

function workerState({ state, deaf, cordon }: WorkerLine): string {
  return `${state}${deaf === null ? "" : ", deaf"}${cordon === null ? "" : ", cordoned"}`;
}

/** One line of the table: a slot, or several next to each other of which there is nothing to say but the same. */
interface Row extends SlotLine {
  ids: string;
}

/** So many waiting slots with the same note are one line. */
const MANY = 4;

/** The column of notes needs `now`, for how long ago the last error was. */
function slotColumns(
  now: number,
  { wide, tasks }: { wide: boolean; tasks: boolean },
): readonly Column<Row>[] {
  return [
    { title: "SLOT", align: "right", text: ({ ids }) => ids },
    { title: "STATE", text: ({ state }) => state },
    { title: "FOR", align: "right", text: (slot) => age(slot.in_state_seconds) },
    { title: "WORKER", text: ({ worker }) => worker ?? "-" },
    { title: "ITERATIONS", align: "right", text: ({ iterations }) => String(iterations) },
    { title: "PROGRESS", align: "right", text: progress },
    { title: "RESTARTS", align: "right", text: ({ restarts }) => String(restarts) },
    ...(wide && tasks ? TASK_COLUMNS : []),
    ...(wide ? PROCESS_COLUMNS : []),
    { title: "NOTE", text: (slot) => note(slot, now) },
  ];
}

const TASK_COLUMNS: readonly Column<Row>[] = [{ title: "TASK", text: taskOf }];

/** Of the slot's process, which it may share with other slots. */
const PROCESS_COLUMNS: readonly Column<Row>[] = [
  { title: "PID", align: "right", text: ({ pid }) => String(pid ?? "-") },
  { title: "MEMORY", align: "right", text: ({ memory_mb: mb }) => (mb === null ? "-" : `${mb} MB`) },
  { title: "CPU", align: "right", text: ({ cpu_percent: cpu }) => (cpu === null ? "-" : `${cpu} %`) },
  { title: "LAG", align: "right", text: ({ loop_lag_ms: lag }) => (lag === null ? "-" : `${lag} ms`) },
];

/** The report as text, with a line feed at its end. `where`: the store, for where nothing is there. `wide` adds each slot's task, and its process with memory, CPU and event loop lag. */
export function renderStatus(report: StatusReport, paint: Paint, { wide = false, where = "" } = {}): string {
  const workers =
    report.workers.length === 0
      ? `No worker has registered${where}; start one with "fleet up" or "fleet worker".`
      : [renderTable(report.workers, WORKER_COLUMNS, paint.dim), ...report.workers.flatMap(notesOn)].join(
          "\n",
        );
  const unread = unreadable(report);
  const automations = report.automations.map((line) => {
    const tasks = line.slot_list.some(({ task }) => task !== null);
    const columns = slotColumns(report.now, { wide, tasks });
    const head = unread.includes(line.name) ? "what is desired cannot be read, see below" : headline(line);
    return renderAutomation(line, head, rowsOf(line, report.now), columns, paint);
  });
  const broken = report.contracts.filter(({ outcome }) => outcome === "broken");
  const contracts = broken.map((edge) => escapeControls(`broken contract: ${edgeWords(edge)}`)).join("\n");
  const damaged = report.damaged.map((record) => escapeControls(damageWords(record))).join("\n");
  return `${[workers, ...automations, contracts, damaged].filter((part) => part !== "").join("\n\n")}\n`;
}

function notesOn({ id, deaf, cordon, drain }: WorkerLine): string[] {
  return [
    ...(deaf === null ? [] : [`${id} is deaf: ${deaf}`]),
    ...(cordon === null
      ? []
      : [`${id} is cordoned by ${cordon.by} for ${duration(cordon.seconds * 1000)}: it gets no new slots`]),
    ...(drain === null ? [] : [drainWords(id, drain)]),
  ].map(escapeControls);
}

/** A canary that is going on, and one that stopped by itself. */
function trialOf({ canary, canary_stopped: stopped }: AutomationLine): string[] {
  return [
    ...(canary === null ? [] : [canaryWords(canary)]),
    ...(stopped === null ? [] : [stoppedCanaryWords(stopped)]),
  ].map((words) => `  ${escapeControls(words)}`);
}

function renderAutomation(
  line: AutomationLine,
  what: string,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  paint: Paint,
): string {
  const head = [`${paint.bold(escapeControls(line.name))}  ${what}`, ...trialOf(line)].join("\n");
  if (rows.length === 0) return head;
  const table = renderTable(rows, columns, paint.dim);
  return `${head}\n${table.replace(/^/gm, "  ")}`;
}

function rowsOf({ slot_list: slots }: AutomationLine, now: number): Row[] {
  const rows: Row[] = [];
  for (let at = 0; at < slots.length;) {
    const slot = slots[at] as SlotLine;
    let end = at + 1;
    while (end < slots.length && alike(slot, slots[end] as SlotLine, now)) end += 1;
    if (end - at < MANY) end = at + 1;
    const last = slots[end - 1] as SlotLine;
    rows.push({ ...slot, ids: end - at === 1 ? `${slot.slot_id}` : `${slot.slot_id}-${last.slot_id}` });
    at = end;
  }
  return rows;
}

function alike(a: SlotLine, b: SlotLine, now: number): boolean {
  const same = a.worker === b.worker && a.iterations === b.iterations && a.restarts === b.restarts;
  return a.state === "waiting" && b.state === "waiting" && same && note(a, now) === note(b, now);
}

function headline({ slots, running, paused, generation, versions }: AutomationLine): string {
  if (slots === null) return "nothing deployed yet";
  const drift = versions.length > 1 ? `, ${versions.length} versions: ${versionWords(versions)}` : "";
  return `${running} of ${slots} slots running${paused ? ", paused" : ""}, generation ${generation}${escapeControls(drift)}`;
}

function taskOf({ task }: SlotLine): string {
  if (task === null) return "-";
  const more = task.count > 1 ? ` +${task.count - 1}` : "";
  const again = task.attempt > 1 ? `, attempt ${task.attempt}` : "";
  return `${task.id}${more} (${duration(task.seconds * 1000)}${again})`;
}

function age(seconds: number | null): string {
  return seconds === null ? "-" : duration(seconds * 1000);
}

function progress({ waiting, last_progress_seconds: seconds }: SlotLine): string {
  return waiting ? "waits" : age(seconds);
}

function note(slot: SlotLine, now: number): string {
  const refused =
    slot.rejected === null
      ? ""
      : `keeps its config: it refused that of generation ${slot.rejected.generation} (${firstLine(slot.rejected.reason)})`;
  return [slot.reason === null ? "" : firstLine(slot.reason), refused, lastError(slot, now)]
    .filter((part) => part !== "")
    .join("; ");
}

function lastError({ state, reason, last_cause, last_error, history }: SlotLine, now: number): string {
  if (last_cause === null && last_error === null) return "";
  // The reason of an open circuit names the last error already.
  if (state === "circuit-open" && reason !== null) return "";
  const at = history[0]?.at;
  const when = at === undefined ? "" : ` ${duration(now - at)} ago`;
  const cause = last_cause === null ? "" : ` (${last_cause.replace(/ \((.*)\)$/, ", $1")})`;
  return `last error${when}${cause}${last_error === null ? "" : `: ${firstLine(last_error)}`}`;
}
