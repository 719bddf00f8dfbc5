/**
 * Tells from sequence numbers how many events a subscription did not get. Pure: it sees the topics' numbers at the time of
 * subscribing (`baselines`), then each event that is handed to the reader.
 */
export class Gaps {
  readonly #last = new Map<string, number>();
  readonly #baselines: ReadonlyMap<string, number>;

  constructor(baselines: ReadonlyMap<string, number>) {
    this.#baselines = baselines;
  }

  /** Events of `topic` missed since the one before (or since subscribing). */
  observe(topic: string, seq: number): number {
    const last = this.#last.get(topic);
    this.#last.set(topic, seq);
    if (last !== undefined && seq > last) return seq - last - 1;
    // The numbering began anew: the store lost its data. What was missed of the old numbering nobody knows.
    if (last !== undefined) return seq - 1;
    // A topic unknown at the time of subscribing began after it, at 1. An event may also be older than its baseline:
    // it was published between the subscription and the reading of the baselines.
    return Math.max(0, seq - (this.#baselines.get(topic) ?? 0) - 1);
  }
}
