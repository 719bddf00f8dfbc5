import { Gap } from "./handler.ts";

/** Entries of a stream that wait for a reader, within bounds. Of what is left out it is known where it was, and how much. */
export class WaitingEntries {
  readonly #most: { entries: number; bytes: number };
  readonly #waiting: (string | Gap)[] = [];
  #entries = 0;
  #bytes = 0;

  constructor(most: { entries: number; bytes: number }) {
    this.#most = most;
  }

  /** One that is larger than the bound is taken where nothing waits. */
  add(raw: string): void {
    const bytes = Buffer.byteLength(raw);
    const full = this.#entries >= this.#most.entries || this.#bytes + bytes > this.#most.bytes;
    if (full && this.#entries > 0) return this.#leaveOut();
    this.#waiting.push(raw);
    this.#entries += 1;
    this.#bytes += bytes;
  }

  shift(): string | Gap | undefined {
    const first = this.#waiting.shift();
    if (typeof first === "string") {
      this.#entries -= 1;
      this.#bytes -= Buffer.byteLength(first);
    }
    return first;
  }

  #leaveOut(): void {
    const last = this.#waiting.at(-1);
    if (last instanceof Gap) last.missed += 1;
    else this.#waiting.push(new Gap());
  }
}
