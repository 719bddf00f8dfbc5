import type { PoolStore } from "../pool-store.ts";
import type { Watch } from "../watch.ts";
import type { Database } from "./database.ts";
import { call, type Notifier } from "./notify.ts";
import type { Writer } from "./writer.ts";

interface Watched {
  /** The pool's count of moves, when last seen. */
  moved: number;
  listeners: Set<{ onHint: () => void }>;
}

const MOVED = "SELECT moved FROM pools WHERE ns = ? AND name = ?";

/** Hints about pools: what this process or another has committed shows in the pool's row. */
export function createPoolWatch(parts: { db: Database; ns: string; writer: Writer; notifier: Notifier }): {
  watch: PoolStore["watch"];
  onMoved: () => void;
} {
  const { db, ns, writer, notifier } = parts;
  const watched = new Map<string, Watched>();
  let fresh = false;

  // A wipe sets the count back, so any difference counts.
  const movedOf = (pool: string) => db.sql(MOVED).get<[number]>(ns, pool)?.[0] ?? 0;

  function look(): boolean {
    const moved = [...watched].filter(([pool, entry]) => {
      const before = entry.moved;
      entry.moved = movedOf(pool);
      return entry.moved !== before;
    });
    for (const [, { listeners }] of moved)
      for (const listener of listeners) call(notifier, () => listener.onHint());
    return moved.length > 0;
  }

  notifier.onForeignCommit(look);
  // Another file has counts of its own, which say nothing about those of the old one.
  db.onReplaced(() => {
    for (const entry of watched.values()) entry.moved = -1;
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
    onMoved() {
      fresh = true;
    },

    watch({ pool }, onHint): Watch {
      const listener = { onHint };
      let open = true;
      const release = notifier.hold();
      const ready = writer.read(() => {
        if (!open) return;
        let entry = watched.get(pool);
        if (entry === undefined) watched.set(pool, (entry = { moved: movedOf(pool), listeners: new Set() }));
        entry.listeners.add(listener);
      });
      ready.catch(release);
      return {
        ready,
        close() {
          open = false;
          release();
          const entry = watched.get(pool);
          if (entry?.listeners.delete(listener) === true && entry.listeners.size === 0) watched.delete(pool);
          return Promise.resolve();
        },
      };
    },
  };
}
