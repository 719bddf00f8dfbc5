import { statSync } from "node:fs";
import { after, monotonicMs, type Timer } from "../../internal/timers.ts";
import type { Database } from "./database.ts";

/** How often it is looked whether the log needs care, while there are commits. */
const LOOK_EVERY_MS = 200;
/** No commit of ours for so long counts as idle. */
const IDLE_MS = 100;
/** A log of this size is copied back and cut in idle time. */
const IDLE_BYTES = 4 * 1024 * 1024;
/** A log of this size is copied back and cut although there is work. */
const MAX_BYTES = 96 * 1024 * 1024;

export interface Checkpointer {
  committed(): void;
  /** Leaves all in the file itself, as far as nobody else is at work on it. */
  close(): void;
}

/**
 * Keeps the write-ahead log short without the pauses that SQLite's own checkpoints put into the path of a commit: it is
 * copied back when this process is idle, or when the log has become very long. A small log is left alone, because copying
 * costs two syncs. The driver may keep a closed connection's files until its statements are collected, so closing does the same
 * once more.
 */
export function createCheckpointer(db: Database): Checkpointer {
  const log = db.path === undefined ? undefined : `${db.path}-wal`;
  let committedAt = 0;
  let timer: Timer | undefined;

  function look(): void {
    timer = undefined;
    const size = sizeOf(log);
    if (size < IDLE_BYTES) return;
    const idle = monotonicMs() - committedAt >= IDLE_MS;
    if (idle || size >= MAX_BYTES) checkpoint(db);
    if (sizeOf(log) >= IDLE_BYTES) arm();
  }

  function arm(): void {
    timer ??= after(LOOK_EVERY_MS, look, { unref: true });
  }

  return {
    committed() {
      if (log === undefined) return;
      committedAt = monotonicMs();
      arm();
    },
    close() {
      timer?.cancel();
      if (log !== undefined) checkpoint(db);
    },
  };
}

function checkpoint(db: Database): void {
  try {
    // First without the lock; what is left to do with it held is then short.
    db.sql("PRAGMA wal_checkpoint(PASSIVE)").all();
    db.sql("PRAGMA wal_checkpoint(TRUNCATE)").all();
  } catch {
    // locked, or the disk is at fault: the next call on the store will say so
  }
}

function sizeOf(log: string | undefined): number {
  if (log === undefined) return 0;
  return statSync(log, { throwIfNoEntry: false })?.size ?? 0;
}
