import { checkOptions, integer, number, type OptionRules } from "../contracts/options.ts";
import type { InferInput, InferOutput, Schema } from "../contracts/schema/standard.ts";
import type { StreamContract } from "../contracts/stream.ts";
import type { Envelope } from "../protocol/envelope.ts";
import type { OnUse } from "./on-use.ts";
import type { PushOptions, StreamEmitter } from "./stream-emitter.ts";
import type { StreamReader } from "./stream-reader.ts";

export interface PopOptions {
  /** Most entries to take; 1 to 10 000, default 1. */
  n?: number;
  /** How long to wait for the first entry, in seconds; 0 (default) does not wait. `Infinity` waits for ever. */
  waitSeconds?: number;
}
export interface PeekOptions {
  /** Most entries to show; 1 to 10 000, default 1. */
  n?: number;
}
const count = integer({ min: 1, max: 10_000 });
const POP: OptionRules<Required<PopOptions>> = {
  n: count,
  waitSeconds: (value, where) =>
    value === Number.POSITIVE_INFINITY ? value : number({ min: 0 })(value, where),
};
const PEEK: OptionRules<Required<PeekOptions>> = { n: count };

/** What an automation sees of somebody's stream. Delivery class: **at most once**: what `pop` returned is gone from the store. */
export interface ConsumerStream<S extends Schema> extends AsyncIterable<InferOutput<S>> {
  /**
   * Up to `n` payloads, oldest first; empty when nothing came within `waitSeconds`, or on shutdown. Throws `FLEET_CLOSED` when the fleet
   * had been closed before, whether or not it would wait.
   */
  pop(options?: PopOptions): Promise<InferOutput<S>[]>;
  /** As `pop`, with `id`, `slotId` and `ts` of each entry. */
  popEnvelopes(options?: PopOptions): Promise<Envelope<InferOutput<S>>[]>;
  /** Up to `n` oldest payloads; they stay. */
  peek(options?: PeekOptions): Promise<InferOutput<S>[]>;
  length(): Promise<number>;
  /** The next payload, however long it takes; undefined on shutdown. */
  next(): Promise<InferOutput<S> | undefined>;
}

export interface StreamHandle<S extends Schema> extends ConsumerStream<S> {
  /**
   * Appends a payload from outside an automation. Resolves once the store has it.
   * Throws a `TypeError` (`FLEET_PAYLOAD_INVALID`, `FLEET_PAYLOAD_TOO_LARGE`) before anything is written.
   */
  push(payload: InferInput<S>, options?: PushOptions): Promise<{ id: string }>;
}

export interface HandleParts<S extends Schema> {
  contract: StreamContract<S>;
  reader: StreamReader<S>;
  /** Ends waits early; see `QueueUse`. */
  signal?: AbortSignal;
  /** Called when something was taken, and around waits on purpose. */
  activity?: { progress(): void; waiting(on: boolean): void };
  /** Called before each pop; throws where this consumer must not take anything any more. */
  fence?: () => void;
  onUse?: OnUse | undefined;
  /** Called at the beginning of each call; throws once what the handle belongs to has been closed. */
  checkOpen?: () => void;
}

export function consumerStream<S extends Schema>({
  contract,
  reader,
  signal,
  activity,
  fence,
  onUse,
  checkOpen,
}: HandleParts<S>): ConsumerStream<S> {
  const where = `stream "${contract.name}"`;
  const take = async (options?: PopOptions) => {
    const { n = 1, waitSeconds = 0 } = checkOptions<Required<PopOptions>>(`${where}: pop`, options, POP);
    onUse?.("pop", contract.name, 0);
    if (waitSeconds > 0) activity?.waiting(true);
    try {
      const found = await reader.pop({ n, waitMs: waitSeconds * 1000, signal, fence });
      if (found.length > 0) {
        activity?.progress();
        onUse?.("pop", contract.name, found.length);
      }
      return found;
    } finally {
      if (waitSeconds > 0) activity?.waiting(false);
    }
  };
  const next = async () => {
    const [envelope] = await take({ waitSeconds: Number.POSITIVE_INFINITY });
    return envelope;
  };
  // What loops over a stream ends quietly on shutdown, also where it was at work on an entry meanwhile: `next` does not ask.
  const popEnvelopes = async (options?: PopOptions) => {
    checkOpen?.();
    return take(options);
  };
  return {
    popEnvelopes,
    pop: async (options) => (await popEnvelopes(options)).map((envelope) => envelope.payload),
    peek: async (options) => {
      const { n = 1 } = checkOptions<Required<PeekOptions>>(`${where}: peek`, options, PEEK);
      return reader.peek(n);
    },
    length: () => reader.length(),
    next: async () => (await next())?.payload,
    async *[Symbol.asyncIterator]() {
      for (let envelope = await next(); envelope !== undefined; envelope = await next())
        yield envelope.payload;
    },
  };
}

export function streamHandle<S extends Schema>(
  parts: HandleParts<S> & { emitter: StreamEmitter<S> },
): StreamHandle<S> {
  return {
    ...consumerStream(parts),
    push: (payload, options) => parts.emitter.emit(payload, options),
  };
}
