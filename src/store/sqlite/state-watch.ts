import type { LockStore } from "../state-store.ts";
import type { Watch } from "../watch.ts";
import type { Database } from "./database.ts";
import { call, type Notifier } from "./notify.ts";
import type { Writer } from "./writer.ts";

type Listener = (key: string | undefined) => void;

/** News that are kept for watches to read; who falls behind by more has lost hints. */
const KEEP_NEWS = 10_000;

const ADD = "INSERT INTO lock_news (ns, name, key) VALUES (?, ?, ?)";
const LAST = "SELECT max(n) FROM lock_news";
const NEWS = "SELECT n, ns, name, key FROM lock_news WHERE n > ? ORDER BY n";
const CUT = "DELETE FROM lock_news WHERE n <= ?";

/** Hints about locks: what this process or another has committed shows in the list of news. */
export function createLockWatch(parts: { db: Database; ns: string; writer: Writer; notifier: Notifier }): {
  watch: LockStore["watch"];
  /** The lock of this key has come free for somebody. Inside a write transaction. */
  news: (name: string, key: string) => void;
} {
  const { db, ns, writer, notifier } = parts;
  const watched = new Map<string, Set<Listener>>();
  let last = 0;
  let fresh = false;

  const newest = () => db.sql(LAST).get<[number | null]>()?.[0] ?? 0;

  function look(): boolean {
    if (watched.size === 0) return false;
    let useful = false;
    for (const [n, where, name, key] of db.sql(NEWS).all<[number, string, string, string]>(last)) {
      last = n;
      const listeners = where === ns ? watched.get(name) : undefined;
      if (listeners === undefined) continue;
      tell(listeners, key);
      useful = true;
    }
    return useful;
  }

  function tell(listeners: Set<Listener>, key: string | undefined): void {
    for (const listener of listeners) call(notifier, () => listener(key));
  }

  notifier.onForeignCommit(look);
  // Another file has news of its own, which say nothing about those of the old one.
  db.onReplaced(() => {
    last = newest();
    for (const listeners of watched.values()) tell(listeners, undefined);
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
    news(name, key) {
      fresh = true;
      db.sql(ADD).run(ns, name, key);
      db.sql(CUT).run(newest() - KEEP_NEWS);
    },

    watch({ name }, onHint): Watch {
      const listener: Listener = (key) => onHint(key);
      let open = true;
      const release = notifier.hold();
      const ready = writer.read(() => {
        if (!open) return;
        if (watched.size === 0) last = newest();
        const listeners = watched.get(name);
        if (listeners === undefined) watched.set(name, new Set([listener]));
        else listeners.add(listener);
      });
      ready.catch(release);
      return {
        ready,
        close() {
          open = false;
          release();
          const listeners = watched.get(name);
          if (listeners?.delete(listener) === true && listeners.size === 0) watched.delete(name);
          return Promise.resolve();
        },
      };
    },
  };
}
