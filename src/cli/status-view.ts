import { escapeControls } from "../internal/redact.ts";
import type { AutomationLine, SlotLine, StatusReport, WorkerLine } from "./status-report.ts";
import { type Column, duration, renderTable } from "./table.ts";

/** Mark-up, so that rendering needs no terminal. */
export interface Paint {
  bold: (text: string) => string;
  dim: (text: string) => string;
}

const WORKER_COLUMNS: readonly Column<WorkerLine>[] = [
  { title: "WORKER", text: ({ id }) => id },
  { title: "STATE", text: ({ state }) => state },
  { title: "HOST", text: ({ host }) => host },
  { title: "PID", align: "right", text: ({ pid }) => String(pid) },
  { title: "LAST BEAT", align: "right", text: (line) => duration(line.last_beat_seconds * 1000) },
  { title: "SLOTS", align: "right", text: ({ slots, capacity }) => `${slots}/${capacity}` },
];

const SLOT_COLUMNS: readonly Column<SlotLine>[] = [
  { title: "SLOT", align: "right", text: (slot) => String(slot.slot_id) },
  { title: "STATE", text: ({ state }) => state },
  { title: "FOR", align: "right", text: (slot) => age(slot.in_state_seconds) },
  { title: "WORKER", text: ({ worker }) => worker ?? "-" },
  { title: "ITERATIONS", align: "right", text: ({ iterations }) => String(iterations) },
  { title: "RESTARTS", align: "right", text: ({ restarts }) => String(restarts) },
  { title: "NOTE", text: note },
];

/** The report as text, with a line feed at its end. */
export function renderStatus(report: StatusReport, paint: Paint): string {
  const workers =
    report.workers.length === 0
      ? 'No worker has registered; start one with "fleet up" or "fleet worker".'
      : renderTable(report.workers, WORKER_COLUMNS, paint.dim);
  return `${[workers, ...report.automations.map((line) => renderAutomation(line, paint))].join("\n\n")}\n`;
}

function renderAutomation(line: AutomationLine, paint: Paint): string {
  const head = `${paint.bold(escapeControls(line.name))}  ${headline(line)}`;
  if (line.slot_list.length === 0) return head;
  const table = renderTable(line.slot_list, SLOT_COLUMNS, paint.dim);
  return `${head}\n${table.replace(/^/gm, "  ")}`;
}

function headline({ slots, running, paused, generation }: AutomationLine): string {
  if (slots === null) return "nothing deployed yet";
  const state = paused ? ", paused" : "";
  return `${running} of ${slots} slots running${state}, generation ${generation}`;
}

function age(seconds: number | null): string {
  return seconds === null ? "-" : duration(seconds * 1000);
}

function note({ reason, last_error }: SlotLine): string {
  const error = last_error === null ? "" : `last error: ${last_error}`;
  return [reason ?? "", error].filter((part) => part !== "").join("; ");
}
