import type { Log, LogFields, LogLevel } from "../internal/log.ts";
import { Streams } from "../primitives/streams.ts";
import type { FromHost, ToHost } from "../protocol/host.ts";
import type { Store } from "../store/store.ts";
import type { StopReason } from "./context.ts";
import type { Automation } from "./definition.ts";
import { SlotRun, traceOf } from "./slot-run.ts";

/** How often changed activity is reported. */
const REPORT_MS = 500;

export interface SlotHostParts {
  automation: Automation;
  store: Store;
  worker: string;
  say: (message: FromHost) => void;
  /** Called after "close", once everything has ended and was flushed. */
  onClosed: () => void;
}

/** Runs slots of one automation in this process, as it is told, and reports. Both runtimes drive one of these. */
export class SlotHost {
  readonly #parts: SlotHostParts;
  readonly #streams: Streams;
  readonly #runs = new Map<number, SlotRun>();
  readonly #reporter: ReturnType<typeof setInterval>;
  #slotCount = 0;
  #closing = false;

  constructor(parts: SlotHostParts) {
    this.#parts = parts;
    this.#streams = new Streams(parts.store, { log: this.#log({}) });
    this.#reporter = setInterval(() => this.#report(), REPORT_MS);
    this.#reporter.unref();
  }

  hear(message: ToHost): void {
    switch (message.type) {
      case "run":
        return this.#start(message);
      case "config":
        return void this.#reconfigure(message);
      case "stop":
        return this.#runs.get(message.slotId)?.stop(message.reason as StopReason);
      case "slot-count":
        this.#slotCount = message.slotCount;
        return;
      case "close":
        this.#closing = true;
        return void this.#closeWhenIdle();
    }
  }

  #start({ slotId, token, slotCount, config }: Extract<ToHost, { type: "run" }>): void {
    const { automation, store, worker, say } = this.#parts;
    this.#slotCount = slotCount;
    const run = new SlotRun({
      automation,
      slotId,
      token,
      config,
      slotCount: () => this.#slotCount,
      worker,
      store,
      streams: this.#streams,
      log: this.#log({ slot: slotId }),
      onRunning: () => say({ type: "running", slotId }),
    });
    this.#runs.set(slotId, run);
    void run.ended.then(({ outcome, error }) => {
      this.#report();
      this.#runs.delete(slotId);
      say({ type: "ended", slotId, outcome, error });
      void this.#closeWhenIdle();
    });
  }

  async #reconfigure({ slotId, config, configKey }: Extract<ToHost, { type: "config" }>): Promise<void> {
    try {
      await this.#runs.get(slotId)?.reconfigure(config);
    } catch (error) {
      this.#log({ slot: slotId }).error("the new config was refused; the old one stays", {
        error: traceOf(error),
      });
    }
    // Told either way: a config that was refused is not offered again and again.
    this.#parts.say({ type: "config-applied", slotId, configKey });
  }

  #report(): void {
    if (this.#runs.size > 0)
      this.#parts.say({ type: "activity", slots: [...this.#runs.values()].map((run) => run.activity()) });
  }

  async #closeWhenIdle(): Promise<void> {
    if (!this.#closing || this.#runs.size > 0) return;
    this.#closing = false;
    clearInterval(this.#reporter);
    await this.#streams.close();
    this.#parts.onClosed();
  }

  #log(fields: LogFields): Log {
    const at = (level: LogLevel) => (message: string, more?: LogFields) =>
      this.#parts.say({
        type: "log",
        level,
        message,
        fields: { automation: this.#parts.automation.name, ...fields, ...more },
      });
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  }
}
