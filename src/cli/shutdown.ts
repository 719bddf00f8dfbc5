import type { Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
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

/** Waits for a signal, drains, and answers the exit code. A second signal ends this process and its children at once. */
export async function untilDrained({ worker, signals, log, drainSeconds }: Shutdown): Promise<number> {
  const name = await signals.first;
  log.info(`${name}: draining, for at most ${drainSeconds} s; a second signal forces the end`);
  void signals.second.then(() => force(worker, log));
  const { forced } = await worker.drain({ deadlineSeconds: drainSeconds });
  if (forced) log.warn("the drain was forced");
  else log.info("drained");
  return forced ? EXIT.forced : EXIT.done;
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
