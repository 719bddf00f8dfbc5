import type { FromHost, ToHost } from "../protocol/host.ts";

type Offer = Extract<ToHost, { type: "config" }>;

export interface ConfigOffersParts {
  /** Resolves when the config fits the automation's schema; throws what is wrong with it. */
  check: (config: unknown) => Promise<unknown>;
  /** Takes it live in the slot's run. False when there is none that could. */
  take: (slotId: number, config: unknown) => Promise<boolean>;
  /** What is told of an error. */
  wordsOf: (error: unknown) => string;
  say: (message: FromHost) => void;
}

/**
 * Configs that the supervisor offers to the slots of a process: checked, taken live where that is asked for, and answered. One after
 * another for each slot; of several that wait only the last one counts, and the others are not answered.
 */
export class ConfigOffers {
  readonly #parts: ConfigOffersParts;
  readonly #waiting = new Map<number, Offer>();
  readonly #busy = new Set<number>();

  constructor(parts: ConfigOffersParts) {
    this.#parts = parts;
  }

  hear(offer: Offer): void {
    this.#waiting.set(offer.slotId, offer);
    if (!this.#busy.has(offer.slotId)) void this.#work(offer.slotId);
  }

  async #work(slotId: number): Promise<void> {
    this.#busy.add(slotId);
    for (;;) {
      const offer = this.#waiting.get(slotId);
      if (offer === undefined) break;
      this.#waiting.delete(slotId);
      await this.#answer(offer);
    }
    this.#busy.delete(slotId);
  }

  async #answer({ slotId, config, configKey, generation, live }: Offer): Promise<void> {
    const { check, take, wordsOf, say } = this.#parts;
    const about = { slotId, configKey, generation };
    try {
      if (!live) {
        await check(config);
        say({ type: "config-fits", ...about });
      } else if (await take(slotId, config)) say({ type: "config-applied", ...about });
    } catch (error) {
      say({ type: "config-rejected", ...about, reason: wordsOf(error) });
    }
  }
}
