import type { Watch } from "../watch.ts";
import type { Database } from "./database.ts";
import { call, type Notifier } from "./notify.ts";
import type { OpenStream } from "./stream-cache.ts";
import type { Writer } from "./writer.ts";

/** What a stream looked like last; `head === next` when it was empty. */
interface Seen {
  head: number;
  next: number;
}

interface Watched {
  seen: Seen;
  hints: Set<() => void>;
}

export interface StreamWatches {
  watch(stream: string, onHint: () => void): Watch;
  /** A transaction of this connection that touched `stream` is durable. */
  changed(stream: OpenStream): void;
}

const LOOK = "SELECT head_seq, next_seq FROM streams WHERE ns = ? AND name = ?";

/**
 * Hints for streams that went from empty to filled. A push of this process says so itself; one of another process shows in
 * the stream's two counters, which are compared with what they were when last seen.
 */
export function createStreamWatch(parts: {
  db: Database;
  ns: string;
  writer: Writer;
  notifier: Notifier;
}): StreamWatches {
  const { db, ns, writer, notifier } = parts;
  const watched = new Map<string, Watched>();

  function look(name: string): Seen {
    const [head, next] = db.sql(LOOK).get<[number, number]>(ns, name) ?? [1, 1];
    return { head, next };
  }

  function lookAt(name: string, entry: Watched): boolean {
    const now = look(name);
    const filled = wasFilled(entry.seen, now);
    entry.seen = now;
    if (filled) for (const hint of entry.hints) call(notifier, hint);
    return filled;
  }

  notifier.onForeignCommit(() => {
    let useful = false;
    for (const [name, entry] of watched) useful = lookAt(name, entry) || useful;
    return useful;
  });

  return {
    watch(name, onHint) {
      const hint = () => onHint();
      let open = true;
      const release = notifier.hold();
      const ready = writer.read(() => {
        if (!open) return;
        let entry = watched.get(name);
        if (entry === undefined) watched.set(name, (entry = { seen: look(name), hints: new Set() }));
        entry.hints.add(hint);
      });
      ready.catch(release);
      return {
        ready,
        close() {
          open = false;
          release();
          const entry = watched.get(name);
          if (entry?.hints.delete(hint) === true && entry.hints.size === 0) watched.delete(name);
          return Promise.resolve();
        },
      };
    },

    changed(stream) {
      const entry = watched.get(stream.name);
      if (entry === undefined) return;
      entry.seen = { head: stream.head, next: stream.next };
      if (stream.filled) for (const hint of entry.hints) call(notifier, hint);
    },
  };
}

/** Whether a stream was empty at some time between two looks and has entries now. */
function wasFilled(seen: Seen, now: Seen): boolean {
  if (now.head === now.next) return false;
  const recreated = now.next < seen.next;
  return recreated || (now.next > seen.next && (seen.head === seen.next || now.head >= seen.next));
}
