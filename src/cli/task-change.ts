// `fleet task retry` and `fleet task cancel`: by id, or many at once by what they are like.
import { createInterface } from "node:readline/promises";
import { FleetError } from "../errors.ts";
import type { TaskState } from "../protocol/task.ts";
import type { Store } from "../store/store.ts";
import { CommandFailed, EXIT } from "./exit.ts";
import type { TargetFlags } from "./options.ts";
import { type FilterFlags, selectIds, statesOf } from "./task-filters.ts";
import { findQueue } from "../control/known-queue.ts";
import type { Terminal } from "./terminal.ts";

export type Change = "retry" | "cancel";

export interface ChangeFlags extends TargetFlags, FilterFlags {
  all?: boolean;
  yes?: boolean;
}

/** Tasks of one step of the store. */
const CHUNK = 100;

interface Verb {
  /** States in which there is something to change; a filter chooses among them. */
  states: readonly TaskState[];
  /** States that are meant where none is named. */
  usual: readonly TaskState[];
  done: string;
  apply: (store: Store, args: { queue: string; ids: string[] }) => Promise<string[]>;
}

const VERBS: Readonly<Record<Change, Verb>> = {
  retry: {
    states: ["failed", "cancelled"],
    usual: ["failed"],
    done: "put back",
    apply: (store, args) => store.queues.retry(args),
  },
  cancel: {
    states: ["scheduled", "waiting", "active"],
    usual: ["scheduled", "waiting", "active"],
    done: "cancelled",
    apply: (store, args) => store.queues.cancel(args),
  },
};

/** What each outcome means for people; true where the task is as it was asked to be. */
const OUTCOMES: Readonly<Record<string, { words: string; good: boolean }>> = {
  waiting: { words: "waits again", good: true },
  "not-finished": { words: "has not ended, so there is nothing to retry", good: false },
  completed: { words: "has completed; submit it anew to run it again", good: false },
  cancelled: { words: "cancelled", good: true },
  cancelling: { words: "runs; it was asked to end", good: true },
  finished: { words: "has ended already", good: false },
  unknown: { words: "is not there", good: false },
};

interface Outcome {
  id: string;
  outcome: string;
}

export async function changeTasks(
  store: Store,
  args: { change: Change; queue: string; ids: readonly string[]; flags: ChangeFlags; terminal: Terminal },
): Promise<void> {
  const { change, queue, flags, terminal } = args;
  const byId = args.ids.length > 0;
  checkUse(args);
  await findQueue(store, queue);
  const ids = byId ? [...new Set(args.ids)] : await select(store, args);
  if (!byId && ids.length > 0 && flags.yes !== true) await confirm(args, ids.length);
  const outcomes: Outcome[] = [];
  for (let at = 0; at < ids.length; at += CHUNK) {
    const some = ids.slice(at, at + CHUNK);
    const answers = await VERBS[change].apply(store, { queue, ids: some });
    outcomes.push(...some.map((id, index) => ({ id, outcome: answers[index] ?? "unknown" })));
  }
  report(args, outcomes, byId);
  // Whoever names a task wants that very one; what fitted a filter may have ended meanwhile.
  if (byId && outcomes.some(({ outcome }) => OUTCOMES[outcome]?.good !== true))
    process.exitCode = EXIT.failed;
  if (terminal.json || byId) return;
  const [first] = outcomes.filter(({ outcome }) => OUTCOMES[outcome]?.good !== true);
  if (first !== undefined) terminal.complain(`fleet: some had changed meanwhile, such as ${first.id}\n`);
}

/** Either ids or filters; everything of a queue only when that is said. */
function checkUse({
  change,
  ids,
  flags,
}: {
  change: Change;
  ids: readonly string[];
  flags: ChangeFlags;
}): void {
  const { state, key, reason, older, newer, limit, all } = flags;
  const filtered = [state, key, reason, older, newer, limit].some((filter) => filter !== undefined);
  if (ids.length > 0 && (filtered || all === true))
    throw new FleetError("FLEET_USAGE", "give ids of tasks, or say which with filters, not both");
  if (ids.length === 0 && !filtered && all !== true)
    throw new FleetError(
      "FLEET_USAGE",
      `which tasks? Give their ids, or say with --state, --key, --reason, --older, --newer or --limit which; --all means all that can be ${change === "retry" ? "retried" : "cancelled"}`,
    );
  const wrong = state?.find((one) => !VERBS[change].states.includes(one));
  if (wrong !== undefined)
    throw new FleetError(
      "FLEET_USAGE",
      `a task that is ${wrong} cannot be ${change === "retry" ? "retried" : "cancelled"}; possible: ${VERBS[change].states.join(", ")}`,
    );
}

async function select(
  store: Store,
  { change, queue, flags }: { change: Change; queue: string; flags: ChangeFlags },
): Promise<string[]> {
  const { states, usual } = VERBS[change];
  const among = flags.state === undefined ? usual : states;
  return selectIds(store.queues, {
    queue,
    states: statesOf(flags, among),
    filters: flags,
    now: await store.now(),
  });
}

async function confirm(
  { change, queue, terminal }: { change: Change; queue: string; terminal: Terminal },
  count: number,
): Promise<void> {
  const what = `${change} ${many(count)} of "${queue}"`;
  if (!process.stdin.isTTY)
    throw new FleetError("FLEET_USAGE", `this would ${what}; say --yes to do it without being asked`);
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    terminal.complain(`This will ${what}.\n`);
    const answer = await prompt.question('Type "yes" to go on: ');
    if (answer.trim() !== "yes") throw new CommandFailed("FLEET_NOT_CONFIRMED", "nothing was changed");
  } finally {
    prompt.close();
  }
}

function report(
  { change, queue, terminal }: { change: Change; queue: string; terminal: Terminal },
  outcomes: readonly Outcome[],
  byId: boolean,
): void {
  const counts: Record<string, number> = {};
  for (const { outcome } of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  if (terminal.json) {
    terminal.print(
      `${JSON.stringify({ queue, count: outcomes.length, outcomes: counts, tasks: outcomes })}\n`,
    );
    return;
  }
  if (byId) {
    for (const { id, outcome } of outcomes) terminal.print(`${id} ${OUTCOMES[outcome]?.words ?? outcome}\n`);
    return;
  }
  const good = outcomes.filter(({ outcome }) => OUTCOMES[outcome]?.good === true).length;
  const asked =
    counts["cancelling"] === undefined ? "" : ` (${counts["cancelling"]} of them run and were asked to end)`;
  terminal.print(`${many(good)} of "${queue}" ${VERBS[change].done}${asked}.\n`);
}

function many(count: number): string {
  return count === 1 ? "1 task" : `${count} tasks`;
}
