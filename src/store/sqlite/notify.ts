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
/** Looks that find nothing to tell are spaced out up to this, as long as reports keep coming. */
const MAX_PAUSE_MS = 4;
/** Reports this far apart are no crowd. */
const QUIET_MS = 50;
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
  let pending = false;
  let pauseMs = 0;
  let reportedAt = 0;

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

  function reported(): void {
    const now = monotonicMs();
    if (now - reportedAt > QUIET_MS) pauseMs = 0;
    reportedAt = now;
    if (pending) return;
    pending = true;
    if (pauseMs === 0) soon(firstLook);
    else setTimeout(firstLook, pauseMs);
  }

  function firstLook(): void {
    if (holds === 0) return void (pending = false);
    const found = check();
    if (found === "unchanged") return void setTimeout(secondLook, SECOND_LOOK_MS);
    settle(found);
  }

  function secondLook(): void {
    settle(holds === 0 ? "unchanged" : check());
  }

  function settle(found: ReturnType<typeof check>): void {
    pending = false;
    pauseMs = found === "told" ? 0 : Math.min(MAX_PAUSE_MS, Math.max(1, pauseMs * 2));
  }

  function start(): void {
    if (db.file === undefined) return;
    version = dataVersion(db);
    watchLog(`${db.file.path}-wal`);
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
        if (!pending) check();
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
      holds = 0;
      stop();
    },
  };
}

/** Calls a listener; one that throws harms neither the others nor the store. */
export function call(notifier: Pick<Notifier, "log">, listener: () => void): void {
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
