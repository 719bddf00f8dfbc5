import type { QueueStore } from "../queue-store.ts";
import type { Watch } from "../watch.ts";
import type { Database } from "./database.ts";
import { call, type Notifier } from "./notify.ts";
import type { QueueNews } from "./queue-book.ts";
import { fromColumn, toColumn } from "./stream-state.ts";
import type { Writer } from "./writer.ts";

type Listener = Parameters<QueueStore["watch"]>[1];

interface Watched {
  /** The queue's count of having become claimable, when last seen. */
  readied: number;
  listeners: Set<Listener>;
}

/** Ends that are kept for watches to read; who falls behind by more has lost hints. */
const KEEP_ENDS = 10_000;

const READIED = "SELECT readied FROM queues WHERE ns = ? AND name = ?";
const ADD_END = "INSERT INTO queue_ends (ns, queue, task_id) VALUES (?, ?, ?)";
const LAST_END = "SELECT max(n) FROM queue_ends";
const ENDS = "SELECT n, ns, queue, task_id FROM queue_ends WHERE n > ? ORDER BY n";
const CUT_ENDS = "DELETE FROM queue_ends WHERE n <= ?";

/** Hints about queues: what this process or another has committed shows in the queue's row and in the list of ends. */
export function createQueueWatch(parts: { db: Database; ns: string; writer: Writer; notifier: Notifier }): {
  watch: QueueStore["watch"];
  news: QueueNews;
} {
  const { db, ns, writer, notifier } = parts;
  const watched = new Map<string, Watched>();
  let lastEnd = 0;
  let fresh = false;

  // A wipe sets the count back, so any difference counts.
  const readied = (queue: string) => db.sql(READIED).get<[number]>(ns, queue)?.[0] ?? 0;
  const newestEnd = () => db.sql(LAST_END).get<[number | null]>()?.[0] ?? 0;

  function look(): boolean {
    if (watched.size === 0) return false;
    const ready = [...watched].filter(([queue, entry]) => {
      const before = entry.readied;
      entry.readied = readied(queue);
      return entry.readied !== before;
    });
    for (const [, { listeners }] of ready) tell(listeners, (on) => on.onReady?.());
    let useful = ready.length > 0;
    for (const [n, where, queue, id] of db.sql(ENDS).all<[number, string, string, unknown]>(lastEnd)) {
      lastEnd = n;
      const entry = where === ns ? watched.get(queue) : undefined;
      if (entry === undefined) continue;
      tell(entry.listeners, (on) => on.onFinished?.(fromColumn(id)));
      useful = true;
    }
    return useful;
  }

  function tell(listeners: Set<Listener>, one: (on: Listener) => void): void {
    for (const on of listeners) call(notifier, () => one(on));
  }

  notifier.onForeignCommit(look);
  // Another file has counts of its own, which say nothing about those of the old one.
  db.onReplaced(() => {
    lastEnd = newestEnd();
    for (const entry of watched.values()) entry.readied = -1;
  });
  writer.join({
    flush() {},
    committed() {
      if (fresh) call(notifier, look);
      fresh = false;
    },
    rolledBack() {
      fresh = false;
    },
  });

  return {
    news: {
      readied() {
        fresh = true;
      },
      ended(queue, ids) {
        fresh = true;
        for (const id of ids) db.sql(ADD_END).run(ns, queue, toColumn(id));
        db.sql(CUT_ENDS).run(newestEnd() - KEEP_ENDS);
      },
    },

    watch({ queue }, on): Watch {
      const listener = { ...on };
      let open = true;
      const release = notifier.hold();
      const ready = writer.read(() => {
        if (!open) return;
        if (watched.size === 0) lastEnd = newestEnd();
        let entry = watched.get(queue);
        if (entry === undefined)
          watched.set(queue, (entry = { readied: readied(queue), listeners: new Set() }));
        entry.listeners.add(listener);
      });
      ready.catch(release);
      return {
        ready,
        close() {
          open = false;
          release();
          const entry = watched.get(queue);
          if (entry?.listeners.delete(listener) === true && entry.listeners.size === 0) watched.delete(queue);
          return Promise.resolve();
        },
      };
    },
  };
}
