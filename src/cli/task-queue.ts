// Finds queues and tasks by name, and says what is there instead.
import { checkName } from "../contracts/name.ts";
import { nearest } from "../internal/suggest.ts";
import type { TaskRecord } from "../protocol/task.ts";
import type { QueueStats } from "../store/queue-store.ts";
import type { Store } from "../store/store.ts";
import { CommandFailed } from "./exit.ts";
import { publishedTasks, type PublishedTasks } from "./task-schema.ts";

/** All that is known of a queue: from its tasks, from who runs them, or both. */
export interface KnownQueue {
  name: string;
  /** Undefined where nothing was submitted yet and no worker runs its tasks. */
  stats: QueueStats | undefined;
  /** Undefined where no worker is known that can run its tasks. */
  published: PublishedTasks | undefined;
}

export async function findQueue(store: Store, name: string): Promise<KnownQueue> {
  checkName("queue", name);
  const [stats, manifests, view] = await Promise.all([
    store.queues.stats({ queue: name }),
    store.registry.manifests(),
    store.registry.view(),
  ]);
  const published = publishedTasks(name, manifests, view);
  if (stats !== undefined || published !== undefined) return { name, stats, published };
  const queues = Object.values(manifests)
    .flat()
    .flatMap(({ tasks }) => tasks?.queue ?? []);
  throw notFound(`there is no queue "${name}"`, name, [...(await store.queues.list()), ...queues]);
}

/** A task by queue and id, or by its id alone, in whichever queue it is. */
export async function taskNamed(store: Store, first: string, second?: string): Promise<TaskRecord> {
  if (second === undefined) {
    const found = await searchTask(store, first);
    if (found !== undefined) return found;
    throw unknownTask("there", first);
  }
  await findQueue(store, first);
  const task = await store.queues.get({ queue: first, id: second });
  if (task === undefined) throw unknownTask(`queue "${first}": there`, second);
  return task;
}

export async function searchTask(store: Store, id: string): Promise<TaskRecord | undefined> {
  for (const queue of await store.queues.list()) {
    const task = await store.queues.get({ queue, id });
    if (task !== undefined) return task;
  }
  return undefined;
}

function unknownTask(where: string, id: string): CommandFailed {
  return new CommandFailed(
    "FLEET_NOT_FOUND",
    `${where} is no task ${id}; it was never submitted, or has ended and is not kept any more`,
  );
}

function notFound(what: string, name: string, names: readonly string[]): CommandFailed {
  const near = nearest(name, names);
  const hint =
    near !== undefined
      ? `did you mean "${near}"?`
      : names.length === 0
        ? "there are none yet"
        : '"fleet task ls" lists all';
  return new CommandFailed("FLEET_NOT_FOUND", `${what}; ${hint}`);
}
