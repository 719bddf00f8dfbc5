import type { QueueSettings, QueueStore } from "../queue-store.ts";
import type { DamageBook } from "../damage.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import type { Notifier } from "./notify.ts";
import { createQueueBook, type OpenQueue } from "./queue-book.ts";
import { createByHand } from "./queue-by-hand.ts";
import { createQueueRecords } from "./queue-records.ts";
import { createQueueSchedules } from "./queue-schedules.ts";
import { createQueueSteps } from "./queue-steps.ts";
import { submitLists } from "./queue-submit.ts";
import { AT_ONCE, forget, forgetTraces, tidy } from "./queue-sweep.ts";
import { createQueueTurns } from "./queue-turns.ts";
import { createQueueWatch } from "./queue-watch.ts";
import type { Writer } from "./writer.ts";

const LIST = "SELECT name FROM queues WHERE ns = ? ORDER BY name";

/**
 * Composes the queues of their parts. Each call opens its queue, works on it and writes it back, in one transaction; a call
 * touches as many rows as it has tasks, and no more however many lie there.
 */
export function createQueues(parts: {
  db: Database;
  ns: string;
  clock: Clock;
  writer: Writer;
  notifier: Notifier;
  damage: DamageBook;
}): QueueStore {
  const { db, ns, writer } = parts;
  const { watch, news } = createQueueWatch(parts);
  const book = createQueueBook({ ...parts, news });
  const steps = createQueueSteps(book);

  function limit(queue: OpenQueue, settings: QueueSettings): void {
    const { concurrency, keyConcurrency } = queue.settings;
    queue.settings = { ...settings };
    if (keyConcurrency !== settings.keyConcurrency) queue.lanes.relimit();
    if (keyConcurrency !== settings.keyConcurrency || concurrency !== settings.concurrency)
      queue.announced = true;
  }

  function sweep(queue: OpenQueue): Awaited<ReturnType<QueueStore["sweep"]>> {
    const { reclaimed, due, expired } = tidy(db, queue);
    const { forgotten, more } = forget(db, queue);
    forgetTraces(db, ns, queue);
    return { reclaimed, expired, forgotten, more: more || [reclaimed, due, expired].includes(AT_ONCE) };
  }

  return {
    declare({ queue: name, settings, as }) {
      return writer.write<QueueSettings>(
        () => {
          const queue = book.open(name) ?? book.create(name, settings);
          if (as === "guest") return queue.settings;
          limit(queue, settings);
          book.save(queue);
          return queue.settings;
        },
        {
          shortcut() {
            const present = book.open(name)?.settings;
            if (present === undefined) return undefined;
            return as === "guest" || same(present, settings) ? present : undefined;
          },
        },
      );
    },

    list() {
      return writer.read(() =>
        db
          .sql(LIST)
          .all<[string]>(ns)
          .map(([name]) => name),
      );
    },

    submit({ queue: name, lists }) {
      let weight = 1;
      let bytes = 0;
      for (const list of lists) {
        weight += list.length;
        for (const { payload } of list) bytes += payload.length;
      }
      return writer.write(
        () => {
          const results = submitLists({ db, ns, book }, name, lists);
          return results === undefined ? { outcome: "undeclared" } : { outcome: "done", lists: results };
        },
        { weight, bytes },
      );
    },

    sweep({ queue: name }) {
      const nothing = () => ({ reclaimed: 0, expired: 0, forgotten: 0, more: false });
      return writer.write(() => steps.change(name, sweep, nothing), { weight: AT_ONCE });
    },

    ...createQueueTurns({ ...parts, book, steps }),
    ...createByHand({ ...parts, steps }),
    ...createQueueRecords({ ...parts, steps }),
    ...createQueueSchedules(parts),
    watch,
  };
}

function same(a: QueueSettings, b: QueueSettings): boolean {
  return (Object.keys(a) as (keyof QueueSettings)[]).every((name) => a[name] === b[name]);
}
