import { Control, type ControlOptions } from "../control/control.ts";
import { messageOf } from "../errors.ts";
import { Throttle } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { Watch } from "../store/watch.ts";

const TURN_MS = 1000;

/** Takes part in leading the fleet: once a second, and whenever the store says that something changed. */
export class ControlLoop {
  readonly #options: ControlOptions;
  readonly #control: Control;
  readonly #trouble = new Throttle(10_000, 60_000);
  #timer: ReturnType<typeof setInterval> | undefined;
  #watch: Watch | undefined;
  #turning: Promise<void> | undefined;
  #again = false;
  #troubled: string | undefined;

  constructor(options: ControlOptions) {
    this.#options = options;
    this.#control = new Control(options);
  }

  get leading(): boolean {
    return this.#control.leading;
  }

  /** Why it cannot take part in leading at present; undefined where it can. */
  get trouble(): string | undefined {
    return this.#troubled;
  }

  start(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => this.#wake(), TURN_MS);
    this.#watch = this.#options.store.registry.watch(() => this.#wake());
    this.#watch.ready.catch(() => undefined);
    this.#control.start();
    this.#wake();
  }

  /** Gives the lead up, where the store answers. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#watch?.close().catch(() => undefined);
    await this.#turning;
    await this.#control
      .stop()
      .catch((error: unknown) =>
        this.#options.log.debug("the lead was not given up", { error: messageOf(error) }),
      );
  }

  #wake(): void {
    if (this.#turning !== undefined) {
      this.#again = true;
      return;
    }
    this.#turning = this.#turn().finally(() => {
      this.#turning = undefined;
      if (!this.#again) return;
      this.#again = false;
      this.#wake();
    });
  }

  async #turn(): Promise<void> {
    try {
      await this.#control.turn(await this.#options.store.registry.revision());
      this.#troubled = undefined;
    } catch (error) {
      const why = messageOf(error);
      this.#troubled = why;
      this.#trouble.pass(
        monotonicMs(),
        () => this.#options.log.warn("the store does not answer; trying again", { error: why }),
        why,
      );
    }
  }
}
