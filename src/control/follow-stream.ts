import { isFleetError, messageOf } from "../errors.ts";
import { sleep } from "../internal/timers.ts";
import type { Store, StoredEntry } from "../store/store.ts";

export interface TailOptions {
  stream: string;
  /** How many of the newest entries to show first. */
  last: number;
  onEntry(raw: string): void;
  /** Told once when the store stops answering, and once when it does again. */
  onTrouble(message: string): void;
  /** Ends it; default: never. */
  signal?: AbortSignal;
}

export interface Following {
  /** Resolves once the stream's end is known: what is pushed from then on is shown. Rejects where the store does not tell. */
  readonly ready: Promise<void>;
  /** Resolves with `signal`; rejects as `ready` does, and with what the store refuses later. */
  readonly ended: Promise<void>;
}

const POLL_MS = 500;
const PAGE = 1000;

/**
 * Shows each entry that is pushed from now on, without taking any. One that is popped or trimmed within half a second can be missed.
 * Begins at once, not only when somebody waits for it.
 */
export function followStream(store: Store, options: TailOptions): Following {
  const end = readToEnd(store, options);
  const ready = end.then(() => undefined);
  const ended = end.then((found) => follow(store, options, found));
  // Whoever waits for one of them only must not die of the other.
  for (const promise of [ready, ended]) promise.catch(() => undefined);
  return { ready, ended };
}

async function follow(store: Store, options: TailOptions, { newest, cursor }: StreamEnd): Promise<void> {
  for (const { raw } of newest) options.onEntry(raw);
  let after = cursor;
  let troubled = false;
  while (options.signal?.aborted !== true) {
    try {
      const page = await peekAfter(store, options.stream, { n: PAGE, after });
      if (troubled) options.onTrouble("the store answers again");
      troubled = false;
      for (const { raw } of page) options.onEntry(raw);
      after = page.at(-1)?.cursor ?? after;
      if (page.length === PAGE) continue;
    } catch (error) {
      if (!isFleetError(error) || !error.retryable) throw error;
      if (!troubled) options.onTrouble(`${messageOf(error)}; trying again`);
      troubled = true;
    }
    await sleep(POLL_MS, options.signal);
  }
}

interface StreamEnd {
  newest: StoredEntry[];
  /** Undefined where there was no entry: all that comes is new. */
  cursor: string | undefined;
}

/** A cursor is known by its entry alone, so one is read also where none is to be shown. */
async function readToEnd(store: Store, { stream, last }: TailOptions): Promise<StreamEnd> {
  const newest = await store.streams.peek({ stream, n: Math.max(1, last), newest: true });
  return { newest: last === 0 ? [] : newest, cursor: newest.at(-1)?.cursor };
}

function peekAfter(
  store: Store,
  stream: string,
  { n, after }: { n: number; after: string | undefined },
): Promise<StoredEntry[]> {
  return store.streams.peek({ stream, n, ...(after === undefined ? {} : { after }) });
}
