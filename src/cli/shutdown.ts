import type { Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import { LEAVE_SECONDS } from "../worker/partition.ts";
import type { Worker } from "../worker/worker.ts";
import { EXIT } from "./exit.ts";

/** A signal so soon after another is the same one. */
const ECHO_MS = 300;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface Signals {
  /** Resolves at the first signal, with its name. */
  readonly first: Promise<string>;
  /** Resolves at the second. */
  readonly second: Promise<string>;
  close(): void;
}

/** From now on signals no longer kill this process: the first two are reported, further ones ignored. */
export function listenForSignals(): Signals {
  const waiting: ((name: string) => void)[] = [];
  const first = new Promise<string>((resolve) => waiting.push(resolve));
  const second = new Promise<string>((resolve) => waiting.push(resolve));
  let heardAt = Number.NEGATIVE_INFINITY;
  const hear = (name: string) => {
    // One Ctrl-C can arrive twice: from the terminal and from a package manager that passes it on.
    if (monotonicMs() - heardAt < ECHO_MS) return;
    heardAt = monotonicMs();
    waiting.shift()?.(name);
  };
  for (const name of SIGNALS) process.on(name, hear);
  return {
    first,
    second,
    close: () => {
      for (const name of SIGNALS) process.off(name, hear);
    },
  };
}

export interface Shutdown {
  worker: Worker;
  signals: Signals;
  log: Log;
  drainSeconds: number;
}

/**
 * Waits for a signal, for somebody who asks this worker to drain, or until its policy says that it has been without the store for too long;
 * drains, and answers the exit code. A second signal ends this process and its children at once.
 */
export async function untilDrained({ worker, signals, log, drainSeconds }: Shutdown): Promise<number> {
  const { why, code, ...how } = await Promise.race([
    signals.first.then((name) => ({ why: name, deadlineSeconds: drainSeconds, code: undefined })),
    worker.asked.then((request) => ({ why: `asked by ${request.by}`, ...request, code: undefined })),
    worker.lost.then(({ afterSeconds }) => ({
      why: `the store has been away for ${afterSeconds} s, and the partition policy is "exit"`,
      deadlineSeconds: Math.min(drainSeconds, LEAVE_SECONDS),
      code: EXIT.unreachable,
    })),
  ]);
  log.info(`${why}: draining, for at most ${how.deadlineSeconds} s; a second signal forces the end`);
  void signals.second.then(() => force(worker, log));
  const { forced } = await worker.drain(how);
  if (forced) log.warn("the drain was forced");
  else log.info("drained");
  return code ?? (forced ? EXIT.forced : EXIT.done);
}

function force(worker: Worker, log: Log): void {
  log.warn("forced to end before the drain was done");
  for (const pid of worker.pids) {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // Gone already.
    }
  }
  process.exit(EXIT.forced);
}
