import { type FSWatcher, watch } from "node:fs";
import { messageOf } from "../../errors.ts";
import { monotonicMs } from "../../internal/timers.ts";
import type { StoreOptions } from "../store.ts";
import type { Database } from "./database.ts";

/**
 * Tells what other processes committed to the file.
 *
 * Every commit appends to the write-ahead log, which the system reports (`fs.watch`); `PRAGMA data_version` then says whether
 * it was somebody else's, and only then does each listener look at its own rows. Where the system cannot watch the file, the
 * version is polled. Nothing runs while nobody waits.
 */
export interface Notifier {
  /** `look` is called after foreign commits and answers whether it found something to tell. */
  onForeignCommit(look: () => boolean): void;
  /** Keeps watching until the returned function is called. */
  hold(): () => void;
  readonly log: NonNullable<StoreOptions["log"]>;
  close(): void;
}

/** A report can come just before its commit can be seen, so an early look is repeated once after this time. */
const SECOND_LOOK_MS = 1;
/** While looks find nothing to tell, they follow each other at least this far apart. */
const MAX_PAUSE_MS = 4;
/** How often the version is read although nothing was reported. */
const POLL_WATCHED_MS = 500;
const POLL_UNWATCHED_MS = 100;

const soon = setImmediate;

export function createNotifier(db: Database, log: Notifier["log"]): Notifier {
  const looks: (() => boolean)[] = [];
  let holds = 0;
  let version = 0;
  let watcher: FSWatcher | undefined;
  let poll: ReturnType<typeof setTimeout> | undefined;
  let planned = false;
  /** Looks that the last report is still worth. */
  let looksLeft = 0;
  let lookedAt = 0;
  /** Least time from one look to the next. */
  let pauseMs = 0;
  let closed = false;

  /** Looks if somebody else committed since the last look: found something, found nothing, or nobody did. */
  function check(): "told" | "fruitless" | "unchanged" {
    try {
      const now = dataVersion(db);
      if (now === version) return "unchanged";
      let told = false;
      for (const look of looks) told = look() || told;
      version = now;
      return told ? "told" : "fruitless";
    } catch {
      return "unchanged"; // locked for a moment: the version was not taken over, so the next look makes up for it
    }
  }

  /** The log was written to, perhaps by ourselves. */
  function reported(): void {
    looksLeft = 2;
    plan(lookedAt + pauseMs - monotonicMs());
  }

  function plan(delayMs: number): void {
    if (planned) return;
    planned = true;
    if (delayMs <= 0) soon(lookNow);
    else setTimeout(lookNow, delayMs);
  }

  function lookNow(): void {
    planned = false;
    if (closed || holds === 0) return;
    lookedAt = monotonicMs();
    const found = check();
    if (found === "unchanged" && --looksLeft > 0) return plan(SECOND_LOOK_MS);
    pauseMs = found === "told" ? 0 : Math.min(MAX_PAUSE_MS, pauseMs + 1);
  }

  function start(): void {
    if (db.path === undefined || closed) return;
    watchLog(`${db.path}-wal`);
    schedulePoll();
  }

  function watchLog(path: string): void {
    try {
      const opened = watch(path, reported);
      watcher = opened;
      opened.on("error", () => {
        opened.close();
        if (watcher === opened) watcher = undefined;
      });
    } catch (error) {
      log("warn", `store ${db.name}: its log cannot be watched, so changes are polled for`, {
        reason: messageOf(error),
      });
    }
  }

  function schedulePoll(): void {
    poll = setTimeout(
      () => {
        if (!planned) check();
        schedulePoll();
      },
      watcher === undefined ? POLL_UNWATCHED_MS : POLL_WATCHED_MS,
    );
  }

  function stop(): void {
    watcher?.close();
    watcher = undefined;
    clearTimeout(poll);
    pauseMs = 0;
  }

  db.onReplaced(() => {
    if (holds === 0) return;
    stop();
    start();
    // Whatever stands in the other file was written by somebody else.
    version = -1;
    reported();
  });

  return {
    log,
    onForeignCommit: (look) => void looks.push(look),
    hold() {
      if (holds++ === 0) start();
      let held = true;
      return () => {
        if (!held) return;
        held = false;
        if (--holds === 0) stop();
      };
    },
    close() {
      closed = true;
      stop();
    },
  };
}

/** Calls a listener; one that throws harms neither the others nor the store. */
export function call(notifier: Pick<Notifier, "log">, listener: () => unknown): void {
  try {
    listener();
  } catch (error) {
    notifier.log("error", "a listener of the store threw", { reason: messageOf(error) });
  }
}

/** Changes whenever another connection has committed. */
function dataVersion(db: Database): number {
  return db.sql("PRAGMA data_version").get<[number]>()?.[0] ?? 0;
}
