import { setMaxListeners } from "node:events";
import { check, payloadError } from "../contracts/validate.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import type { Streams } from "../primitives/streams.ts";
import type { RunOutcome, SlotActivity } from "../protocol/host.ts";
import type { Store } from "../store/store.ts";
import { Activity } from "./activity.ts";
import { inSlot } from "./current-slot.ts";
import type { Context, StopReason } from "./context.ts";
import type { Automation } from "./definition.ts";
import { slotContext } from "./slot-context.ts";
import { isStoreLost } from "./store-lost.ts";

export interface SlotRunParts {
  automation: Automation;
  slotId: number;
  /** Fencing token of the slot's lease. */
  token: string;
  /** Config in its input form, as it stands in the store. */
  config: unknown;
  slotCount: () => number;
  worker: string;
  store: Store;
  streams: Streams;
  log: Log;
  /** Called once, when user code is about to start. */
  onRunning: () => void;
  /** Throws `FLEET_LEASE_LOST` when the slot's lease is not sure any more: before every effect on the store. */
  fence: () => void;
  /** Called whenever this slot's own code is about to go on. */
  touched: (slotId: number) => void;
}

export interface Ended {
  outcome: RunOutcome;
  error: string | null;
}

/** One run of one slot: parse the config, build the context, call `runSlot`, and name how it ended. */
export class SlotRun {
  readonly ended: Promise<Ended>;
  readonly #parts: SlotRunParts;
  readonly #abort = new AbortController();
  readonly #activity: Activity;
  #config: unknown;
  #context: Context | undefined;

  constructor(parts: SlotRunParts) {
    this.#parts = parts;
    this.#activity = new Activity(() => parts.touched(parts.slotId));
    // User code may wait in many places at once; more than ten listeners are no leak.
    setMaxListeners(0, this.#abort.signal);
    this.ended = inSlot(parts.slotId, () => this.#run());
  }

  stop(reason: StopReason): void {
    this.#abort.abort(reason);
  }

  activity(): SlotActivity {
    return this.#activity.report(this.#parts.slotId);
  }

  /** Takes a new config live. Throws where it does not fit; the old one stays in place then. */
  async reconfigure(config: unknown): Promise<void> {
    const parsed = await parseConfig(this.#parts.automation, config);
    const context = this.#context;
    if (context === undefined) throw new Error("the slot is not running yet");
    const before = this.#config;
    this.#config = parsed;
    try {
      await this.#parts.automation.options.onConfig?.(parsed, context);
    } catch (error) {
      this.#config = before;
      throw error;
    }
  }

  async #run(): Promise<Ended> {
    const { automation, onRunning } = this.#parts;
    const { signal } = this.#abort;
    try {
      this.#config = await parseConfig(automation, this.#parts.config);
    } catch (error) {
      return { outcome: "config-invalid", error: error instanceof Error ? error.message : String(error) };
    }
    if (signal.aborted) return { outcome: "stopped", error: null };
    this.#context = slotContext({
      ...this.#parts,
      config: () => this.#config,
      signal,
      activity: this.#activity,
    });
    onRunning();
    this.#activity.progress();
    try {
      await automation.options.runSlot(this.#context);
      return { outcome: signal.aborted ? "stopped" : "returned", error: null };
    } catch (error) {
      // What code throws because it was told to end (an aborted fetch, say) is an orderly end.
      if (signal.aborted) return { outcome: "stopped", error: null };
      return { outcome: isStoreLost(error) ? "store-lost" : "failed", error: traceOf(error) };
    } finally {
      // Whatever the run left going (loops beside the one that failed, waiting pops) ends with it: the next run starts alone.
      this.#abort.abort("ended" satisfies StopReason);
    }
  }
}

export async function parseConfig(automation: Automation, config: unknown): Promise<unknown> {
  const schema = automation.options.config;
  if (schema === undefined) return config;
  const checked = await check(schema, config);
  if (!checked.ok) throw payloadError(`config of "${automation.name}"`, checked.issues);
  return checked.value;
}

/** Message and stack of whatever was thrown, with what caused it, at most 4000 characters; never throws itself. */
export function traceOf(error: unknown): string {
  let text = error instanceof Error ? stackOf(error) : `thrown: ${messageOf(error)}`;
  // "fetch failed" says nothing without its cause.
  for (
    let inner = error, depth = 0;
    depth < 3 && inner instanceof Error && inner.cause !== undefined;
    depth++
  ) {
    inner = inner.cause;
    text += `\ncaused by: ${inner instanceof Error ? stackOf(inner) : messageOf(inner)}`;
  }
  return text.slice(0, 4000);
}

function stackOf(error: Error): string {
  // A stack is whatever somebody put there.
  return typeof error.stack === "string" ? error.stack : `${error.name}: ${error.message}`;
}
