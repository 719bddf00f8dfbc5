import { monotonicMs } from "../internal/timers.ts";
import type { HostVitals } from "../protocol/host.ts";

/** This process's vitals: what it uses, and how late its event loop is. */
export class Vitals {
  readonly #everyMs: number;
  #cpu = process.cpuUsage();
  #readAt = monotonicMs();
  #due: number;
  #lag = 0;

  /** `everyMs`: how often `turned` is to be called. */
  constructor(everyMs: number) {
    this.#everyMs = everyMs;
    this.#due = monotonicMs() + everyMs;
  }

  /** By a timer; it is as late as the event loop is. */
  turned(): void {
    const now = monotonicMs();
    this.#lag = Math.max(this.#lag, now - this.#due);
    this.#due = now + this.#everyMs;
  }

  read(): HostVitals {
    const now = monotonicMs();
    const used = process.cpuUsage(this.#cpu);
    const spent = Math.max(1, now - this.#readAt);
    const vitals = {
      memoryMb: Math.round(process.memoryUsage.rss() / 1e6),
      cpuPercent: Math.round(((used.user + used.system) / 1000 / spent) * 100),
      loopLagMs: Math.max(0, Math.round(this.#lag)),
    };
    this.#cpu = process.cpuUsage();
    this.#readAt = now;
    this.#lag = 0;
    return vitals;
  }
}
