// Finds queues and tasks by name, and says what is there instead.
import { checkName } from "../contracts/name.ts";
import { FleetError } from "../errors.ts";
import type { TaskRecord } from "../protocol/task.ts";
import type { QueueStats } from "../store/queue-store.ts";
import type { Store } from "../store/store.ts";
import { notFound } from "./not-found.ts";
import { publishedTasks, type PublishedTasks } from "./published-tasks.ts";

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
  throw notFound("queue", name, [...(await store.queues.list()), ...queues], {
    others: '"fleet task ls" lists all',
  });
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

function unknownTask(where: string, id: string): FleetError {
  return new FleetError(
    "FLEET_NOT_FOUND",
    `${where} is no task ${id}; it was never submitted, or has ended and is not kept any more`,
  );
}
