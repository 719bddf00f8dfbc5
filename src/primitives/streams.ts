import { setMaxListeners } from "node:events";
import type { Schema } from "../contracts/schema/standard.ts";
import { isStreamContract, type StreamContract } from "../contracts/stream.ts";
import { FleetError, messageOf } from "../errors.ts";
import { Throttle, type Log } from "../internal/log.ts";
import type { Store } from "../store/store.ts";
import { IdlePoller } from "./idle-poller.ts";
import type { OnUse } from "./on-use.ts";
import {
  consumerStream,
  streamHandle,
  type ConsumerStream,
  type HandleParts,
  type StreamHandle,
} from "./stream.ts";
import { StreamEmitter } from "./stream-emitter.ts";
import { StreamPublisher } from "./stream-publisher.ts";
import { StreamReader } from "./stream-reader.ts";
import { StreamWaiters } from "./stream-waiters.ts";

/** How often expired entries of the streams that this process pushes to are cleared away. Bounds their memory to 60 s. */
const SWEEP_MS = 30_000;
/** How often trouble with one stream is said. */
const SAY_MS = 5000;

export interface StreamsOptions {
  log: Log;
  /** Interval of the look behind lost hints, in ms; one store call per interval and process. Default 1000. */
  pollMs?: number;
  /** Throws when nothing of this slot may reach the store any more: asked again before every push that had to wait. */
  fence?: (slotId: number) => void;
  /** Default nobody. */
  onUse?: OnUse;
}

/** The streams of one process: what its handles share (publishers, waiting lines, one idle poller, one sweep). */
export class Streams {
  readonly #store: Store;
  readonly #log: Log;
  readonly #fence: ((slotId: number) => void) | undefined;
  readonly #onUse: OnUse | undefined;
  readonly #poller: IdlePoller;
  readonly #publishers = new Map<string, StreamPublisher>();
  readonly #waiters = new Map<string, StreamWaiters>();
  /** Shared by all handles of a stream: code that makes one for each pop must not flood the log. */
  readonly #quietly = new Map<string, Throttle>();
  #sweeper: ReturnType<typeof setInterval> | undefined;
  readonly #over = new AbortController();

  constructor(store: Store, options: StreamsOptions) {
    this.#store = store;
    this.#log = options.log;
    this.#fence = options.fence;
    this.#onUse = options.onUse;
    // As many parts of a process may wait at once as there are; each listens while it waits, so more than ten are no leak.
    setMaxListeners(0, this.#over.signal);
    this.#poller = new IdlePoller(options.pollMs ?? 1000);
  }

  /** For automations: their own stream's way in. As owner it writes the stream's bounds. */
  emitter<S extends Schema>(
    contract: StreamContract<S>,
    slotId: number | null,
    as: "owner" | "guest",
  ): StreamEmitter<S> {
    const direction = as === "owner" ? "emit" : "push";
    const onPushed = (count: number) => this.#onUse?.(direction, contract.name, count);
    return new StreamEmitter(contract, this.#publisher(contract, as), slotId, onPushed);
  }

  consumer<S extends Schema>(
    contract: StreamContract<S>,
    use: Pick<HandleParts<S>, "signal" | "activity" | "fence"> & { log?: Log } = {},
  ): ConsumerStream<S> {
    return consumerStream({
      contract,
      reader: this.#reader(contract, use.log),
      ...use,
      signal: this.#signal(use.signal),
      onUse: this.#onUse,
    });
  }

  handle<S extends Schema>(contract: StreamContract<S>): StreamHandle<S> {
    return streamHandle({
      contract,
      reader: this.#reader(contract),
      emitter: this.emitter(contract, null, "guest"),
      signal: this.#over.signal,
      onUse: this.#onUse,
      checkOpen: () => this.#checkOpen(),
    });
  }

  /** Waits for every push accepted so far, then ends all waiting. Idempotent. */
  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    await Promise.all([...this.#publishers.values()].map((publisher) => publisher.flushed()));
    this.#over.abort();
    await Promise.all([...this.#waiters.values()].map((waiters) => waiters.close()));
  }

  #signal(own: AbortSignal | undefined): AbortSignal {
    // Its user may wait in as many places at once as there are.
    if (own !== undefined) setMaxListeners(0, own);
    return own ?? this.#over.signal;
  }

  #publisher(contract: StreamContract, as: "owner" | "guest"): StreamPublisher {
    this.#sweeper ??= setInterval(() => void this.#sweep(), SWEEP_MS).unref();
    const key = `${as} ${contract.name}`;
    const known = this.#publishers.get(key);
    if (known !== undefined) return known;
    const made = new StreamPublisher(this.#store, contract, as, this.#fence);
    this.#publishers.set(key, made);
    return made;
  }

  #reader<S extends Schema>(contract: StreamContract<S>, log = this.#log): StreamReader<S> {
    if (!isStreamContract(contract)) {
      throw new FleetError(
        "FLEET_OPTION_INVALID",
        "expected a stream contract made by defineStream(name, schema), or an automation's `.output`",
      );
    }
    this.#checkOpen();
    const stream = contract.name;
    let waiters = this.#waiters.get(stream);
    if (waiters === undefined) {
      waiters = new StreamWaiters((onHint) => this.#store.streams.watch({ stream }, onHint), this.#poller);
      this.#waiters.set(stream, waiters);
    }
    let quietly = this.#quietly.get(stream);
    if (quietly === undefined) this.#quietly.set(stream, (quietly = new Throttle(SAY_MS)));
    return new StreamReader(this.#store.streams, contract, { waiters, log, quietly });
  }

  #checkOpen(): void {
    if (this.#over.signal.aborted) throw new FleetError("FLEET_CLOSED", "this fleet has been closed");
  }

  async #sweep(): Promise<void> {
    const names = new Set([...this.#publishers.keys()].map((key) => key.slice(key.indexOf(" ") + 1)));
    for (const stream of names) {
      try {
        await this.#store.streams.sweep({ stream });
      } catch (error) {
        this.#log.debug(`stream "${stream}": sweep failed; the next one is due in ${SWEEP_MS / 1000} s`, {
          error: messageOf(error),
        });
        return;
      }
    }
  }
}
