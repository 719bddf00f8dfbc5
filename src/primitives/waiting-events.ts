import type { BusEvent } from "../protocol/event.ts";

export interface WaitingBounds {
  /** Most events. */
  buffer: number;
  /** Most bytes of payloads, about; undefined for no such bound. The one event that waits alone may be larger. */
  maxBytes?: number | undefined;
  whenFull: "drop-oldest" | "drop-newest";
}

/** Events that wait for a reader, within bounds. What is dropped shows in the numbers of those that are not. */
export class WaitingEvents {
  readonly #bounds: WaitingBounds;
  readonly #events: { event: BusEvent; bytes: number }[] = [];
  #bytes = 0;

  constructor(bounds: WaitingBounds) {
    this.#bounds = bounds;
  }

  get length(): number {
    return this.#events.length;
  }

  /** False where it was dropped at once. */
  add(event: BusEvent): boolean {
    const { buffer, maxBytes, whenFull } = this.#bounds;
    const bytes = maxBytes === undefined ? 0 : bytesOf(event);
    while (
      this.#events.length > 0 &&
      (this.#events.length >= buffer || this.#bytes + bytes > (maxBytes ?? Infinity))
    ) {
      if (whenFull === "drop-newest") return false;
      this.shift();
    }
    this.#events.push({ event, bytes });
    this.#bytes += bytes;
    return true;
  }

  shift(): BusEvent | undefined {
    const first = this.#events.shift();
    this.#bytes -= first?.bytes ?? 0;
    return first?.event;
  }
}

/** A character counts as two: so are texts kept in memory at most. */
function bytesOf({ payload, topic, source }: BusEvent): number {
  return 2 * ((JSON.stringify(payload) ?? "").length + topic.length + source.length);
}
