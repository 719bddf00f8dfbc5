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

const POLL_MS = 500;
const PAGE = 1000;

/** Shows each entry that is pushed from now on, without taking any. One that is popped within half a second can be missed. */
export async function followStream(store: Store, options: TailOptions): Promise<void> {
  const { newest, cursor } = await readToEnd(store, options);
  for (const { raw } of newest) options.onEntry(raw);
  let after = cursor;
  let troubled = false;
  while (options.signal?.aborted !== true) {
    try {
      const page = await peekAfter(store, options.stream, after);
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

/** Walks to the present end, keeping only the newest entries. Without any entry there is no cursor: all that comes is new. */
async function readToEnd(
  store: Store,
  { stream, last }: TailOptions,
): Promise<{ newest: StoredEntry[]; cursor: string | undefined }> {
  let newest: StoredEntry[] = [];
  let cursor: string | undefined;
  for (;;) {
    const page = await peekAfter(store, stream, cursor);
    newest = last === 0 ? [] : [...newest, ...page].slice(-last);
    cursor = page.at(-1)?.cursor ?? cursor;
    if (page.length < PAGE) return { newest, cursor };
  }
}

function peekAfter(store: Store, stream: string, after: string | undefined): Promise<StoredEntry[]> {
  return store.streams.peek({ stream, n: PAGE, ...(after === undefined ? {} : { after }) });
}
