import { backoffMs } from "../internal/backoff.ts";
import type { FromHost, ToHost } from "../protocol/host.ts";
import type { ProgramAutomation } from "../protocol/program.ts";
import type { ActualHost } from "./reconcile.ts";
import type { Host, HostExit, Runtime } from "./runtime.ts";

/** A host that cannot be started is tried again after 1 s, 2 s, … up to a minute. */
const RETRY = { baseMs: 1000, capMs: 60_000, jitter: 0.2 };

interface Entry extends ActualHost {
  automation: string;
  host: Host;
  /** What the host said of its own end, before it ended. */
  lastWords: string | undefined;
  slotCount: number;
}

export interface HostEnd {
  key: string;
  automation: string;
  /** Null for a host that was told to close and did. */
  error: string | null;
}

/** The child processes (or inline hosts) of this worker. Only the supervisor touches it. */
export class Hosts {
  readonly #runtime: Runtime;
  readonly #hear: (key: string, message: FromHost) => void;
  readonly #ended: (end: HostEnd) => void;
  readonly #entries = new Map<string, Entry>();
  readonly #failures = new Map<string, { count: number; retryAt: number; error: string }>();

  constructor(
    runtime: Runtime,
    hear: (key: string, message: FromHost) => void,
    ended: (end: HostEnd) => void,
  ) {
    this.#runtime = runtime;
    this.#hear = hear;
    this.#ended = ended;
  }

  actual(): ActualHost[] {
    return [...this.#entries.values()].map(({ key, state }) => ({ key, state }));
  }

  get size(): number {
    return this.#entries.size;
  }

  retryAt(): Map<string, number> {
    return new Map([...this.#failures].map(([key, failure]) => [key, failure.retryAt]));
  }

  /** Why no host of this automation runs, if its last start failed. */
  failureOf(key: string): string | undefined {
    return this.#failures.get(key)?.error;
  }

  pids(): number[] {
    return [...this.#entries.values()].flatMap(({ host }) => host.pid ?? []);
  }

  start(key: string, program: ProgramAutomation, now: () => number): void {
    const entry: Entry = {
      key,
      automation: program.manifest.name,
      state: "starting",
      lastWords: undefined,
      slotCount: -1,
      host: this.#runtime.start(
        program,
        (message) => this.#onMessage(key, message),
        (exit) => this.#onExit(key, exit, now()),
      ),
    };
    this.#entries.set(key, entry);
  }

  tell(key: string, message: ToHost): void {
    this.#entries.get(key)?.host.tell(message);
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

  kill(key: string): void {
    this.#entries.get(key)?.host.kill();
  }

  #onMessage(key: string, message: FromHost): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    if (message.type === "ready" && entry.state === "starting") {
      entry.state = "ready";
      this.#failures.delete(key);
    }
    if (message.type === "unfit" || message.type === "fatal") entry.lastWords = message.error;
    this.#hear(key, message);
  }

  #onExit(key: string, { code, signal }: HostExit, now: number): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
    const error = entry.lastWords ?? `the process ended (${how})`;
    const orderly = entry.state === "closing" && code === 0;
    if (entry.state === "starting") {
      const count = (this.#failures.get(key)?.count ?? 0) + 1;
      this.#failures.set(key, { count, retryAt: now + backoffMs(count, RETRY), error });
    }
    this.#ended({ key, automation: entry.automation, error: orderly ? null : error });
  }
}
