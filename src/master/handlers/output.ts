import type { OUTPUT_ROUTES } from "../../client/routes/output.ts";
import { followStream } from "../../control/follow-stream.ts";
import type { Store } from "../../store/store.ts";
import { entryAsJson } from "../../protocol/envelope.ts";
import { type EventSource, Gap, type Handlers, RawJson } from "../handler.ts";
import { WaitingEntries } from "../waiting-entries.ts";
import { notFound } from "../../control/not-found.ts";

/** What waits for a slow reader at most; what is more is left out for it, and it is told how much. */
const MAX_WAITING = { entries: 1000, bytes: 4 * 1024 * 1024 };

export const OUTPUT_HANDLERS: Handlers<keyof typeof OUTPUT_ROUTES> = {
  popOutput: async ({ params: { name }, body }, { store }) => {
    const raws = await store.streams.pop({ stream: name, n: body.n });
    if (raws.length === 0) await mustBeThere(store, name);
    return listOf(raws);
  },
  peekOutput: async ({ params: { name }, query }, { store }) => {
    const entries = await store.streams.peek({ stream: name, n: query.n });
    if (entries.length === 0) await mustBeThere(store, name);
    return listOf(entries.map(({ raw }) => raw));
  },
  outputLength: async ({ params: { name } }, { store }) => {
    await mustBeThere(store, name);
    return { length: await store.streams.length({ stream: name }) };
  },
  tailOutput: ({ params: { name }, signal }, { store }) => tail(store, name, signal),
};

/** Entries as they stand in the store. One that is no JSON must not spoil those that left the stream with it. */
function listOf(raws: readonly string[]): RawJson {
  return new RawJson(`[${raws.map(entryAsJson).join(",")}]`);
}

/** A stream is there once somebody has declared it: its automation has run, or a worker has published it. */
async function mustBeThere(store: Store, stream: string): Promise<void> {
  if ((await store.streams.stats({ stream })) !== undefined) return;
  const manifests = await store.registry.manifests();
  const outputs = Object.values(manifests)
    .flat()
    .flatMap(({ output }) => output?.stream ?? []);
  if (outputs.includes(stream)) return;
  throw notFound("automation with an output named", stream, [...(await store.streams.list()), ...outputs]);
}

/** Follows from `ready` on, whenever the reader begins. */
function tail(store: Store, stream: string, signal: AbortSignal): EventSource<RawJson | Gap> {
  const waiting = new WaitingEntries(MAX_WAITING);
  const left = new AbortController();
  let over = false;
  let wake: () => void = () => undefined;
  const following = mustBeThere(store, stream).then(() =>
    followStream(store, {
      stream,
      last: 0,
      onEntry: (raw) => {
        waiting.add(raw);
        wake();
      },
      onTrouble: () => undefined,
      signal: AbortSignal.any([signal, left.signal]),
    }),
  );
  const done = following
    .then(({ ended }) => ended)
    .finally(() => {
      over = true;
      wake();
    });
  // The reader hears of its failure; one who never begins does not.
  done.catch(() => undefined);
  async function* entries(): AsyncGenerator<RawJson | Gap, void, void> {
    try {
      for (;;) {
        for (let one = waiting.shift(); one !== undefined; one = waiting.shift())
          yield one instanceof Gap ? one : new RawJson(entryAsJson(one));
        if (over) return await done;
        await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      left.abort();
    }
  }
  return Object.assign(entries(), { ready: following.then(({ ready }) => ready) });
}
