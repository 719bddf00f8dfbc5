/** Whoever made a request, for as long as it lasts. */
export interface Caller {
  /** Aborts when the caller has gone, or the master ends. */
  readonly signal: AbortSignal;
  /** The caller has gone: whatever is done for it ends. */
  gone(): void;
  /** The request is over: nothing that outlives it remembers it. */
  letGo(): void;
}

/** `stopping` lives as long as the master, so each request has to be taken off it again. */
export function callerOf(request: AbortSignal, stopping: AbortSignal): Caller {
  const over = new AbortController();
  const sources = [request, stopping];
  const abort = (event: Event) => over.abort((event.target as AbortSignal).reason);
  const letGo = () => {
    for (const source of sources) source.removeEventListener("abort", abort);
  };
  const aborted = sources.find((source) => source.aborted);
  if (aborted === undefined)
    for (const source of sources) source.addEventListener("abort", abort, { once: true });
  else over.abort(aborted.reason);
  return {
    signal: over.signal,
    gone: () => {
      letGo();
      over.abort();
    },
    letGo,
  };
}
