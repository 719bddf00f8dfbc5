// `fleet schedule …`: what submits tasks by itself, straight from the store.
import type { Command } from "commander";
import { damageWords } from "../control/damaged.ts";
import { findSchedule, scheduledQueue } from "../control/known-schedule.ts";
import { runNow } from "../control/schedules.ts";
import { escapeControls } from "../internal/redact.ts";
import type { ScheduleRecord } from "../protocol/task.ts";
import type { Store } from "../store/store.ts";
import { addTargetOptions, type TargetFlags } from "./options.ts";
import { renderSchedules, scheduleLine } from "./schedule-view.ts";
import { readEach } from "./read-each.ts";
import { withStore } from "./target.ts";
import type { Terminal } from "./terminal.ts";

export function addSchedule(program: Command, terminal: Terminal): void {
  const schedule = program
    .command("schedule")
    .description("see and steer what submits tasks by itself")
    .addHelpText(
      "after",
      "\nExamples:\n  fleet schedule ls\n  fleet schedule run reports nightly\n  fleet schedule pause reports nightly\n\nSchedules are declared with a batch automation (schedules: { … }) or made by fleet.queue(…).schedule(…).",
    );
  addTargetOptions(schedule.command("ls [queue]").description("all schedules, with their next tick")).action(
    (queue: string | undefined, _options, command: Command) =>
      withStore(command.optsWithGlobals<TargetFlags>(), async (store) => {
        if (queue !== undefined) await scheduledQueue(store, queue);
        const lines = await linesOf(store, queue === undefined ? await store.queues.list() : [queue]);
        terminal.print(
          terminal.json ? `${JSON.stringify(lines)}\n` : renderSchedules(lines, terminal.colors(1).dim),
        );
      }),
  );
  addOne(schedule, terminal, "run", "submit a task of it now; its ticks go on as they are", runOnce);
  addOne(schedule, terminal, "pause", "let its ticks pass by until it is resumed", (store, at) =>
    pause(store, at, true),
  );
  addOne(schedule, terminal, "resume", "count its ticks again, from now on", (store, at) =>
    pause(store, at, false),
  );
  addOne(
    schedule,
    terminal,
    "rm",
    "remove it; one that a definition declares comes back with its worker",
    remove,
  );
}

interface At {
  queue: string;
  id: string;
  record: ScheduleRecord;
}

/** What was done, in words and for programs. */
interface Done {
  words: string;
  json: object;
}

function addOne(
  schedule: Command,
  terminal: Terminal,
  verb: string,
  description: string,
  act: (store: Store, at: At) => Promise<Done>,
): void {
  addTargetOptions(schedule.command(`${verb} <queue> <id>`).description(description)).action(
    (queue: string, id: string, _options, command: Command) =>
      withStore(command.optsWithGlobals<TargetFlags>(), async (store) => {
        const { words, json } = await act(store, { queue, id, record: await findSchedule(store, queue, id) });
        terminal.print(terminal.json ? `${JSON.stringify({ queue, id, ...json })}\n` : `${words}\n`);
      }),
  );
}

async function runOnce(store: Store, { queue, id, record }: At): Promise<Done> {
  const task = await runNow(store.queues, queue, record.spec);
  return { words: `Submitted task ${task} of schedule "${id}".`, json: { task } };
}

async function pause(store: Store, { queue, id, record }: At, paused: boolean): Promise<Done> {
  const changed = record.paused !== paused;
  if (changed) await store.queues.pauseSchedule({ queue, id, paused });
  const state = paused ? "paused" : "running";
  return {
    words: `Schedule "${id}" of queue "${queue}" ${changed ? "is" : "was"} ${state}${changed ? "" : " already"}.`,
    json: { paused, changed },
  };
}

async function remove(store: Store, { queue, id, record }: At): Promise<Done> {
  await store.queues.removeSchedule({ queue, id });
  const again =
    record.spec.origin === "definition"
      ? " Its automation declares it: the next worker that starts puts it back."
      : "";
  return { words: `Removed schedule "${id}" of queue "${queue}".${again}`, json: { removed: true } };
}

async function linesOf(store: Store, queues: readonly string[]) {
  const all = await readEach("queue", queues, async (queue) => {
    const { now, schedules } = await store.queues.schedules({ queue });
    return schedules.map((record) => scheduleLine(queue, record, now));
  });
  for (const record of await store.damaged())
    if (record.kind === "schedule") process.stderr.write(`${escapeControls(damageWords(record))}\n`);
  return all.flatMap(({ found }) => found);
}
