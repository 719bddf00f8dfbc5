import { backoffMs } from "../internal/backoff.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { FromHost, HostVitals, ToHost } from "../protocol/host.ts";
import type { Manifest, RecycleLimits } from "../protocol/manifest.ts";
import type { ProgramAutomation } from "../protocol/program.ts";
import type { Flight } from "./flight-mark.ts";
import type { ActualHost, KillCause } from "./reconcile.ts";
import type { Host, HostExit, Runtime } from "./runtime.ts";

/** A host that cannot be started is tried again after 1 s, 2 s, … up to a minute. */
const RETRY = { baseMs: 1000, capMs: 60_000, jitter: 0.2 };
/** Above so many times its soft limit a host's memory is not waited for. */
const HARD_MEMORY = 1.5;
const SILENT_MS = 1500;

interface Entry {
  key: string;
  state: ActualHost["state"];
  automation: string;
  /** Of a batch automation. */
  tasks: Manifest["tasks"];
  host: Host;
  startedAt: number;
  /** The last sign of life. */
  heardAt: number;
  vitals: HostVitals;
  iterations: number;
  limits: RecycleLimits;
  /** What the host said of its own end, before it ended. */
  lastWords:
    | { error: string; slotId: number | null; uncaught: "user code" | "store lost" | null }
    | undefined;
  /** Why it was killed by its supervisor. */
  killedFor: KillCause | undefined;
  slotCount: number;
  /** Slots that it was told to run, and not to stop. */
  running: Set<number>;
}

export interface HostEnd {
  key: string;
  automation: string;
  tasks: Manifest["tasks"];
  /** Under which name it claimed tasks. */
  holder: string;
  /** It was told to close and did. */
  orderly: boolean;
  exit: HostExit;
  lastWords: Entry["lastWords"];
  killedFor: KillCause | undefined;
}

/** A host that claims tasks of a queue. */
export interface TaskHost {
  key: string;
  tasks: NonNullable<Manifest["tasks"]>;
  holder: string;
  /** Whether tasks may be handed to it: its loop turns, and it has slots that are not to stop. */
  takes: boolean;
  tell(message: ToHost): void;
}

/** A host that holds leases on items and locks. */
export interface LeaseHost {
  /** Under which name it holds them; unique for ever. */
  holder: string;
  tell(message: ToHost): void;
}

export interface HostLimits {
  /** A ready host whose event loop has not turned for so long is killed. */
  blockedMs: number;
  /** A host that is not ready after so long is killed. */
  startMs: number;
}

/** The child processes (or inline hosts) of this worker. Only the supervisor touches it; all times are its monotonic ones. */
export class Hosts {
  readonly #runtime: Runtime;
  readonly #limits: HostLimits;
  readonly #hear: (key: string, message: FromHost) => void;
  readonly #ended: (end: HostEnd) => void;
  readonly #entries = new Map<string, Entry>();
  readonly #failures = new Map<string, { count: number; retryAt: number }>();

  constructor(
    runtime: Runtime,
    limits: HostLimits,
    hear: (key: string, message: FromHost) => void,
    ended: (end: HostEnd) => void,
  ) {
    this.#runtime = runtime;
    this.#limits = limits;
    this.#hear = hear;
    this.#ended = ended;
  }

  actual(now: number): ActualHost[] {
    return [...this.#entries.values()].map((entry) => ({
      key: entry.key,
      state: entry.state,
      doomed: entry.killedFor === undefined ? this.#doom(entry, now) : null,
    }));
  }

  get size(): number {
    return this.#entries.size;
  }

  retryAt(): Map<string, number> {
    return new Map([...this.#failures].map(([key, failure]) => [key, failure.retryAt]));
  }

  /** Forgets failed starts of hosts that nobody wants any more: their keys bear versions, of which there is no end. */
  forgetFailures(isWanted: (key: string) => boolean): void {
    for (const key of this.#failures.keys()) if (!isWanted(key)) this.#failures.delete(key);
  }

  pids(): number[] {
    return [...this.#entries.values()].flatMap(({ host }) => host.pid ?? []);
  }

  about(
    key: string,
  ): { pid: number | null; vitals: HostVitals; quietMs: (now: number) => number } | undefined {
    const entry = this.#entries.get(key);
    return entry && { pid: entry.host.pid, vitals: entry.vitals, quietMs: (now) => now - entry.heardAt };
  }

  /** Those that say nothing, though they give a sign of life twice a second as long as their loop turns. */
  silent(now: number): { key: string; flight: Flight }[] {
    return [...this.#entries.values()]
      .filter(({ state, heardAt, tasks }) => state === "ready" && tasks !== null && now - heardAt > SILENT_MS)
      .map(({ key, host }) => ({ key, flight: host.flight() }));
  }

  /** Who a host is to those that keep its leases. */
  holderOf(key: string): LeaseHost | undefined {
    const host = this.#entries.get(key)?.host;
    return host && { holder: host.holder, tell: (message) => host.tell(message) };
  }

  /** Those that claim tasks. */
  takers(now = monotonicMs()): TaskHost[] {
    return [...this.#entries.values()].flatMap(({ key, tasks, host, heardAt, running }) =>
      tasks === null
        ? []
        : [
            {
              key,
              tasks,
              holder: host.holder,
              takes: running.size > 0 && now - heardAt <= SILENT_MS,
              tell: (message: ToHost) => host.tell(message),
            },
          ],
    );
  }

  /** The one of this automation that was started last, of those that run slots and give signs of life. */
  listener(automation: string, now = monotonicMs()): { tell(message: ToHost): void } | undefined {
    const entry = [...this.#entries.values()].findLast(
      (one) => one.automation === automation && one.running.size > 0 && now - one.heardAt <= SILENT_MS,
    );
    return entry && { tell: (message) => entry.host.tell(message) };
  }

  /** Keys of hosts that have reached a limit of their automation and are to be replaced. */
  due(now: number): string[] {
    return [...this.#entries.values()]
      .filter((entry) => entry.state === "ready" && isDue(entry, now))
      .map(({ key }) => key);
  }

  start(key: string, program: ProgramAutomation, now: () => number): void {
    const { manifest } = program;
    const entry: Entry = {
      key,
      automation: manifest.name,
      tasks: manifest.tasks,
      state: "starting",
      startedAt: now(),
      heardAt: now(),
      vitals: { memoryMb: 0, cpuPercent: 0, loopLagMs: 0 },
      iterations: 0,
      limits: manifest.recycle ?? {},
      lastWords: undefined,
      killedFor: undefined,
      slotCount: -1,
      running: new Set(),
      host: this.#runtime.start(
        program,
        (message) => this.#onMessage(key, message, now()),
        (exit) => this.#onExit(key, exit, now()),
      ),
    };
    this.#entries.set(key, entry);
  }

  /** The supervisor stood still for so long: nothing of it counts as silence. */
  forgive(ms: number): void {
    for (const entry of this.#entries.values()) {
      entry.heardAt += ms;
      entry.startedAt += ms;
    }
  }

  tell(key: string, message: ToHost): void {
    const entry = this.#entries.get(key);
    if (message.type === "run") entry?.running.add(message.slotId);
    if (message.type === "stop") entry?.running.delete(message.slotId);
    entry?.host.tell(message);
  }

  /** Tells hosts of `automation` how many slots there are, where that changed. */
  tellSlotCount(automation: string, slotCount: number): void {
    for (const entry of this.#entries.values()) {
      if (entry.automation !== automation || entry.slotCount === slotCount) continue;
      entry.slotCount = slotCount;
      entry.host.tell({ type: "slot-count", slotCount });
    }
  }

  close(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.state = "closing";
    entry.host.tell({ type: "close" });
  }

  kill(key: string, cause: KillCause): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.killedFor ??= cause;
    entry.host.kill();
  }

  #doom(entry: Entry, now: number): KillCause | null {
    if (entry.state === "starting")
      return now - entry.startedAt > this.#limits.startMs ? "start-timeout" : null;
    if (now - entry.heardAt > this.#limits.blockedMs) return "loop-blocked";
    const { maxMemoryMb } = entry.limits;
    return maxMemoryMb !== undefined && entry.vitals.memoryMb > maxMemoryMb * HARD_MEMORY ? "memory" : null;
  }

  #onMessage(key: string, message: FromHost, now: number): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.heardAt = now;
    if (message.type === "ready" && entry.state === "starting") {
      entry.state = "ready";
      this.#failures.delete(key);
    }
    if (message.type === "unfit") entry.lastWords = { error: message.error, slotId: null, uncaught: null };
    if (message.type === "fatal")
      entry.lastWords = {
        error: message.error,
        slotId: message.slotId,
        uncaught: message.storeLost ? "store lost" : "user code",
      };
    if (message.type === "ended") entry.running.delete(message.slotId);
    if (message.type === "activity") {
      entry.vitals = message.vitals;
    }
    this.#hear(key, message);
  }

  /** Turns of its slots: counted where they are compared with what was known before. */
  turned(key: string, turns: number): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) entry.iterations += turns;
  }

  #onExit(key: string, exit: HostExit, now: number): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    const { lastWords, killedFor, automation, tasks, host } = entry;
    const orderly = entry.state === "closing" && exit.code === 0;
    if (entry.state === "starting") {
      const count = (this.#failures.get(key)?.count ?? 0) + 1;
      this.#failures.set(key, { count, retryAt: now + backoffMs(count, RETRY) });
    }
    this.#ended({ key, automation, tasks, holder: host.holder, orderly, exit, lastWords, killedFor });
  }
}

function isDue({ limits, startedAt, iterations, vitals }: Entry, now: number): boolean {
  if (limits.afterSeconds !== undefined && now - startedAt >= limits.afterSeconds * 1000) return true;
  if (limits.afterIterations !== undefined && iterations >= limits.afterIterations) return true;
  return limits.maxMemoryMb !== undefined && vitals.memoryMb > limits.maxMemoryMb;
}

export function endingOf({ code, signal }: Pick<HostExit, "code" | "signal">): string {
  return `the process ended (${signal === null ? `exit code ${code}` : `signal ${signal}`})`;
}
