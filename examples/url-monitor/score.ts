import type { Measurement } from "./contracts.ts";

/** What is known about one URL: how often it was up, and how fast it answered. */
export class Score {
  last: Measurement | undefined;
  looks = 0;
  ups = 0;
  /** Of those that got an answer, in milliseconds. */
  slowestMs = 0;
  #answers = 0;
  #totalMs = 0;

  add(measurement: Measurement): void {
    this.last = measurement;
    this.looks += 1;
    if (measurement.ok) this.ups += 1;
    if (measurement.error !== null) return;
    this.#answers += 1;
    this.#totalMs += measurement.latencyMs;
    this.slowestMs = Math.max(this.slowestMs, measurement.latencyMs);
  }

  /** Share of the looks that found it up, in percent. */
  get availability(): number {
    return this.looks === 0 ? 0 : (100 * this.ups) / this.looks;
  }

  /** Undefined while no answer ever came. */
  get averageMs(): number | undefined {
    return this.#answers === 0 ? undefined : this.#totalMs / this.#answers;
  }
}
