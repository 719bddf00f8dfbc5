import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import { eventBus, type Events } from "../primitives/events.ts";
import type { Subscription } from "../primitives/subscription.ts";
import { PROBE_PREFIX } from "../protocol/event.ts";
import type { Store } from "../store/store.ts";

export interface SelfCheckParts {
  store: Store;
  workerId: string;
  /** How often it probes; a probe that is not heard within half of that counts as lost. */
  everyMs: number;
  log: Log;
  /** Told at each change: why nothing is received, or null. */
  onChange: (why: string | null) => void;
}

/**
 * Proves that this worker can still receive: it publishes a probe and waits to hear it through a subscription like those that real work
 * comes by. A worker that looks alive and hears nothing is the worst kind: after a lost probe it says so and makes a new
 * subscription; work still comes, by polling, only later.
 */
export class SelfCheck {
  readonly #parts: SelfCheckParts;
  readonly #topic: string;
  readonly #events: Events;
  #ear: Subscription | undefined;
  #heard = 0;
  #sent = 0;
  #timer: ReturnType<typeof setInterval> | undefined;
  #checking = false;

  constructor(parts: SelfCheckParts) {
    this.#parts = parts;
    this.#topic = `${PROBE_PREFIX}${parts.workerId}`.slice(0, 128);
    this.#events = eventBus({ store: parts.store.events, source: parts.workerId, own: true });
  }

  start(): void {
    if (this.#timer !== undefined) return;
    this.#listen();
    this.#timer = setInterval(() => void this.#check(), this.#parts.everyMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#ear?.close();
  }

  #listen(): void {
    const ear = this.#events.subscribe(this.#topic);
    this.#ear = ear;
    void (async () => {
      try {
        for await (const { payload } of ear) this.#heard = Math.max(this.#heard, Number(payload));
      } catch (error) {
        this.#parts.log.debug("the self-check's subscription ended", { error: messageOf(error) });
      }
    })();
  }

  async #check(): Promise<void> {
    if (this.#checking) return;
    this.#checking = true;
    const probe = ++this.#sent;
    try {
      await this.#events.publish(this.#topic, probe);
    } catch {
      // Then the store is away, which is said elsewhere; that is no deafness.
      this.#checking = false;
      return;
    }
    const until = monotonicMs() + this.#parts.everyMs / 2;
    while (this.#heard < probe && monotonicMs() < until && this.#timer !== undefined) {
      await new Promise((resolve) => setTimeout(resolve, Math.min(20, this.#parts.everyMs / 10)));
    }
    this.#checking = false;
    if (this.#timer === undefined) return;
    if (this.#heard >= probe) return this.#parts.onChange(null);
    this.#parts.onChange(
      "a probe that this worker published did not come back; its subscriptions are being renewed",
    );
    void this.#ear?.close().catch(() => undefined);
    this.#listen();
  }
}
