// `fleet explain`: why something is not done yet, in words.
import type { Command } from "commander";
import { checkContracts, liveManifests } from "../control/contract-check.ts";
import { escapeControls } from "../internal/redact.ts";
import { nearest } from "../internal/suggest.ts";
import type { TaskRecord, TaskState } from "../protocol/task.ts";
import type { Store } from "../store/store.ts";
import { FleetError } from "../errors.ts";
import { explainAgreement } from "./explain-agreement.ts";
import { explainAutomation, explainSlot, type Finding } from "./explain-automation.ts";
import { findPermits } from "./explain-permits.ts";
import { aheadOf, explainTask } from "./explain-task.ts";
import { addTargetOptions, type TargetFlags } from "./options.ts";
import { automationLine } from "../control/status-report.ts";
import { withStore } from "./target.ts";
import type { Terminal } from "./terminal.ts";

/** Tasks looked at to find what is before one, or holds its key. */
const MOST = 5000;
const PAGE = 500;

interface Explained {
  kind: "task" | "slot" | "automation";
  name: string;
  findings: Finding[];
}

export function addExplain(program: Command, terminal: Terminal): void {
  addTargetOptions(
    program
      .command("explain")
      .argument("<what>", "an automation, a slot as in scraper/3, or a task's id")
      .argument("[task]", "a task's id, where <what> is its queue")
      .description("say why something is not done yet"),
  )
    .addHelpText(
      "after",
      "\nExamples:\n  fleet explain scraper\n  fleet explain scraper/3\n  fleet explain 01993c5e-8f6b-7c3a-a1b2-c3d4e5f60718\n  fleet explain scraper nightly",
    )
    .action((what: string, id: string | undefined, _options, command: Command) =>
      withStore(command.optsWithGlobals<TargetFlags>(), async (store) => {
        const explained = await explain(store, what, id);
        const { name, findings } = explained;
        terminal.print(
          terminal.json
            ? `${JSON.stringify(explained)}\n`
            : [
                terminal.colors(1).bold(escapeControls(name)),
                ...findings.map(({ message }) => `  ${escapeControls(message)}`),
                "",
              ].join("\n"),
        );
      }),
    );
}

async function explain(store: Store, what: string, id: string | undefined): Promise<Explained> {
  const { taskNamed, searchTask } = await import("../control/known-queue.ts");
  if (id !== undefined) return aboutTask(store, await taskNamed(store, what, id));
  const [, automation, slotId] = /^([^/]+)\/(\d+)$/.exec(what) ?? [];
  const names = await knownNames(store);
  if (automation !== undefined && names.includes(automation))
    return aboutSlot(store, automation, Number(slotId));
  if (names.includes(what)) return aboutAutomation(store, what);
  const task = await searchTask(store, what);
  if (task !== undefined) return aboutTask(store, task);
  const near = nearest(automation ?? what, names);
  throw new FleetError(
    "FLEET_NOT_FOUND",
    `there is no automation, queue or task "${what}"${near === undefined ? "" : `; did you mean "${near}"?`}`,
  );
}

async function knownNames(store: Store): Promise<string[]> {
  const [view, queues] = await Promise.all([store.registry.view(), store.queues.list()]);
  return [
    ...new Set([
      ...Object.keys(view.desired),
      ...view.workers.flatMap(({ automations }) => automations),
      ...queues,
    ]),
  ];
}

async function lineOf(store: Store, name: string) {
  const [view, health] = await Promise.all([store.registry.view(), store.registry.slotHealth()]);
  return { line: automationLine(name, view, health), now: view.now, view };
}

async function aboutAutomation(store: Store, name: string): Promise<Explained> {
  const [{ line, now, view }, stats, manifests] = await Promise.all([
    lineOf(store, name),
    store.queues.stats({ queue: name }),
    store.registry.manifests(),
  ]);
  const contracts = checkContracts(liveManifests(manifests, view.workers, now));
  const permits = stats === undefined ? undefined : await findPermits(store, name, now);
  return {
    kind: "automation",
    name,
    findings: [...explainAutomation(line, stats, now, permits), ...explainAgreement(line, contracts)],
  };
}

async function aboutSlot(store: Store, name: string, slotId: number): Promise<Explained> {
  const { line } = await lineOf(store, name);
  const slot = line.slot_list.find(({ slot_id }) => slot_id === slotId);
  const findings =
    slot === undefined
      ? [{ code: "no-slot", message: `"${name}" has ${line.slots ?? 0} slots: there is no slot ${slotId}` }]
      : explainSlot(name, slot);
  return { kind: "slot", name: `${name}/${slotId}`, findings };
}

async function aboutTask(store: Store, task: TaskRecord): Promise<Explained> {
  const queue = task.queue;
  const [{ line, now }, stats] = await Promise.all([lineOf(store, queue), store.queues.stats({ queue })]);
  if (stats === undefined) throw new FleetError("FLEET_NOT_FOUND", `queue "${queue}" is not there any more`);
  const open = task.state === "waiting" || task.state === "scheduled";
  const running = open && task.key !== null ? await some(store, queue, "active") : undefined;
  const before = task.state === "waiting" ? await some(store, queue, "waiting") : undefined;
  const findings = explainTask({
    task,
    stats,
    automation: line,
    now,
    running: running?.tasks.filter(({ key }) => key === task.key) ?? [],
    permits: task.state === "waiting" ? await findPermits(store, queue, now) : undefined,
    ahead: { ...aheadOf(task, before?.tasks ?? []), more: before?.more ?? false },
  });
  return { kind: "task", name: `${queue} ${task.id} (${task.state})`, findings };
}

async function some(
  store: Store,
  queue: string,
  state: TaskState,
): Promise<{ tasks: TaskRecord[]; more: boolean }> {
  const tasks: TaskRecord[] = [];
  for (let cursor: string | undefined; tasks.length < MOST;) {
    const page = await store.queues.page({
      queue,
      state,
      n: PAGE,
      ...(cursor === undefined ? {} : { cursor }),
    });
    tasks.push(...page.tasks);
    if (page.next === undefined) return { tasks, more: false };
    cursor = page.next;
  }
  return { tasks, more: true };
}
