// `fleet task …`: submits tasks, shows them, and puts them back or cancels them, straight in the store.
import { type Command, InvalidArgumentError, Option } from "commander";
import { FleetError } from "../errors.ts";
import { ON_DUPLICATE, TASK_STATES } from "../protocol/task.ts";
import type { Store } from "../store/store.ts";
import { addTargetOptions, span, type TargetFlags } from "./options.ts";
import { readEach } from "./read-each.ts";
import { withStore } from "./target.ts";
import type { Change, ChangeFlags } from "./task-change.ts";
import { addFilters, type FilterFlags, selectTasks, statesOf } from "./task-filters.ts";
import type { SubmitFlags } from "./task-submit.ts";
import { queueLine, renderQueues, renderTask, renderTasks, taskLine } from "./task-view.ts";
import type { Terminal } from "./terminal.ts";

const LIST_LIMIT = 50;
/** What is going on comes first, then what needs a look. */
const LIST_ORDER = ["active", "waiting", "scheduled", "failed", "cancelled", "completed"] as const;

export function addTask(program: Command, terminal: Terminal): void {
  const task = program
    .command("task")
    .description("submit tasks to queues, look at them, retry and cancel them")
    .addHelpText(
      "after",
      `
Examples:
  fleet task submit scraper '{"url":"https://example.com"}'
  fleet task submit scraper '{"url":"https://example.com"}' --delay 2h --priority 10
  fleet task ls                                      all queues
  fleet task ls scraper --state failed --newer 1h    the dead letter of the last hour
  fleet task show 01993c5e-8f6b-7c3a-a1b2-c3d4e5f60718
  fleet task retry scraper --reason timeout          all that failed for that reason
  fleet task cancel scraper --key customer-7 --yes`,
    );
  addSubmit(task, terminal);
  addLs(task, terminal);
  addShow(task, terminal);
  addChange(task, terminal, "retry");
  addChange(task, terminal, "cancel");
}

function addSubmit(task: Command, terminal: Terminal): void {
  addTargetOptions(
    task
      .command("submit")
      .argument("<queue>", "name of the queue: that of its batch automation")
      .argument(
        "<payloads...>",
        "JSON, checked against the automation's schema; - reads one from each line of stdin",
      )
      .description("submit tasks: all of them or none"),
  )
    .option("--delay <time>", "not before so long from now: 90s, 10m, 2h, 3d", span)
    .option("--at <time>", "not before then: as in 2027-06-01T08:00:00Z", pointInTime)
    .option("--priority <number>", "-1000 to 1000, higher goes first", numberOf)
    .option("--key <key>", "tasks of one key run one after the other")
    .option("--dedupe-key <key>", "submit it only once while it is unfinished")
    .addOption(new Option("--on-duplicate <what>", "what becomes of a duplicate").choices(ON_DUPLICATE))
    .option("--dedupe-window <time>", "window of throttle and debounce", span)
    .option("--max-attempts <count>", "attempts that may fail before it goes to the dead letter", numberOf)
    .option("--timeout <time>", "longest time of one attempt; 0 for no limit", span)
    .option("--ttl <time>", "longest time until its first start; 0 for no limit", span)
    .option("--id <id>", "its id: submitting the same id again is harmless")
    .option("--wait <time>", "wait until it has ended, and print its result", span)
    .option("--unchecked", "do not check the payload")
    .addHelpText(
      "after",
      `
Prints the id of each task, with --wait the result instead. A payload that does not fit is refused with exit code 2, and nothing
is submitted. Where no worker has published a schema, a payload is only taken with --unchecked.

Examples:
  fleet task submit scraper '{"url":"https://example.com"}' --wait 30s
  fleet task submit reports '{"day":"2027-06-01"}' --at 2027-06-02T03:00:00Z --dedupe-key daily
  cat urls.jsonl | fleet task submit scraper -`,
    )
    .action(async (queue: string, texts: string[], _options, command: Command) => {
      const { submitTasks } = await import("./task-submit.ts");
      const flags = command.optsWithGlobals<SubmitFlags>();
      await withStore(flags, (store) => submitTasks(store, { name: queue, texts, flags, terminal }));
    });
}

function addLs(task: Command, terminal: Terminal): void {
  addFilters(
    addTargetOptions(task.command("ls [queue]").description("all queues, or the tasks of one")),
    LIST_LIMIT,
  )
    .addHelpText(
      "after",
      "\nExamples:\n  fleet task ls\n  fleet task ls scraper --state active,waiting\n  fleet task ls scraper --state failed --newer 1h --json",
    )
    .action((queue: string | undefined, _options, command: Command) => {
      const flags = command.optsWithGlobals<TargetFlags & FilterFlags>();
      const filter = (["state", "key", "reason", "older", "newer"] as const).find(
        (one) => flags[one] !== undefined,
      );
      if (queue === undefined && filter !== undefined)
        throw new FleetError(
          "FLEET_USAGE",
          `--${filter} is for the tasks of one queue: fleet task ls QUEUE --${filter} …`,
        );
      return withStore(flags, (store) =>
        queue === undefined ? listQueues(store, terminal) : listTasks(store, queue, flags, terminal),
      );
    });
}

async function listQueues(store: Store, terminal: Terminal): Promise<void> {
  const [now, names] = await Promise.all([store.now(), store.queues.list()]);
  const all = await readEach("queue", names, (name) => store.queues.stats({ queue: name }));
  const lines = all.map(({ name, found }) => queueLine(name, found, now));
  terminal.print(terminal.json ? `${JSON.stringify(lines)}\n` : renderQueues(lines, terminal.colors(1).dim));
}

async function listTasks(
  store: Store,
  queue: string,
  filters: FilterFlags,
  terminal: Terminal,
): Promise<void> {
  const { findQueue } = await import("../control/known-queue.ts");
  await findQueue(store, queue);
  const now = await store.now();
  const tasks = await selectTasks(store.queues, {
    queue,
    states: statesOf(filters, LIST_ORDER),
    filters,
    now,
  });
  if (terminal.json) return terminal.print(`${JSON.stringify(tasks.map(taskLine))}\n`);
  terminal.print(renderTasks(tasks, now, terminal.colors(1).dim));
  if (tasks.length === filters.limit)
    terminal.complain(`The first ${filters.limit} are shown; --limit shows more.\n`);
}

function addShow(task: Command, terminal: Terminal): void {
  addTargetOptions(
    task
      .command("show")
      .argument("<queue>", "name of the queue; it may be left out")
      .argument("[id]", "id of the task")
      .description("all about one task"),
  )
    .addHelpText(
      "after",
      "\nExamples:\n  fleet task show 01993c5e-8f6b-7c3a-a1b2-c3d4e5f60718\n  fleet task show scraper nightly --json",
    )
    .action((first: string, second: string | undefined, _options, command: Command) =>
      withStore(command.optsWithGlobals<TargetFlags>(), async (store) => {
        const { taskNamed } = await import("../control/known-queue.ts");
        const [found, now] = await Promise.all([taskNamed(store, first, second), store.now()]);
        terminal.print(
          terminal.json
            ? `${JSON.stringify(taskLine(found))}\n`
            : renderTask(found, now, terminal.colors(1).bold),
        );
      }),
    );
}

const ABOUT: Readonly<Record<Change, string>> = {
  retry: "put failed or cancelled tasks back, with fresh counters, to be run at once",
  cancel: "cancel tasks; those that run are asked to end",
};

function addChange(task: Command, terminal: Terminal, change: Change): void {
  addFilters(
    addTargetOptions(
      task
        .command(change)
        .argument("<queue>", "name of the queue")
        .argument("[ids...]", "ids of tasks; without, filters say which")
        .description(ABOUT[change]),
    ),
  )
    .option("--all", change === "retry" ? "the whole dead letter" : "all that have not ended")
    .option("--yes", "do not ask")
    .addHelpText("after", changeHelp(change))
    .action(async (queue: string, ids: string[], _options, command: Command) => {
      const { changeTasks } = await import("./task-change.ts");
      const flags = command.optsWithGlobals<ChangeFlags>();
      await withStore(flags, (store) => changeTasks(store, { change, queue, ids, flags, terminal }));
    });
}

function changeHelp(change: Change): string {
  const examples =
    change === "retry"
      ? "  fleet task retry scraper 01993c5e-8f6b-7c3a-a1b2-c3d4e5f60718\n  fleet task retry scraper --reason timeout --newer 1h\n  fleet task retry scraper --all --yes"
      : "  fleet task cancel scraper 01993c5e-8f6b-7c3a-a1b2-c3d4e5f60718\n  fleet task cancel scraper --state waiting --older 1d";
  return `\nBy filters the number of tasks is shown first, and asked for; --yes does not ask. States: ${TASK_STATES.join(", ")}.\n\nExamples:\n${examples}`;
}

function numberOf(text: string): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (!Number.isNaN(value)) return value;
  throw new InvalidArgumentError("It must be a number.");
}

function pointInTime(text: string): Date {
  const at = /^\d{12,}$/.test(text) ? new Date(Number(text)) : new Date(text);
  if (!Number.isNaN(at.getTime()) && /\d{4}-\d\d|^\d{12,}$/.test(text)) return at;
  throw new InvalidArgumentError("It must be a time, as in 2027-06-01T08:00:00Z, or Unix milliseconds.");
}
