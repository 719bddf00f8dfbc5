import type { EventStore, Registry, Store, StreamStore } from "./store.ts";

/** One call that has settled: for counters, timings and logs. */
export interface StoreCall {
  /** `streams.push`, `registry.beat`, … */
  name: string;
  durationMs: number;
  /** Undefined when the call succeeded. */
  error: unknown;
}

/**
 * Shows every call of a store to `seen`, whatever its back end. Cross-cutting work belongs here, once, in front of all back ends.
 * Watches and subscriptions are passed through: they are not calls that settle.
 */
export function instrumented(store: Store, seen: (call: StoreCall) => void): Store {
  const timed = <T>(name: string, call: () => Promise<T>): Promise<T> => {
    const started = performance.now();
    const done = (error?: unknown) => seen({ name, durationMs: performance.now() - started, error });
    return call().then(
      (value) => {
        done();
        return value;
      },
      (error: unknown) => {
        done(error);
        throw error;
      },
    );
  };
  const wrap = <P extends StreamStore | EventStore | Registry>(part: string, port: P): P =>
    new Proxy(port, {
      get: (target, key) => {
        const method: unknown = Reflect.get(target, key);
        if (typeof method !== "function") return method;
        if (key === "watch" || key === "subscribe") return (method as () => unknown).bind(target);
        return (...args: unknown[]) =>
          timed(`${part}.${String(key)}`, () =>
            (method as (...a: unknown[]) => Promise<unknown>).apply(target, args),
          );
      },
    });
  return {
    traits: store.traits,
    namespace: store.namespace,
    get fleetId() {
      return store.fleetId;
    },
    streams: wrap("streams", store.streams),
    events: wrap("events", store.events),
    registry: wrap("registry", store.registry),
    now: () => timed("now", () => store.now()),
    wipe: () => timed("wipe", () => store.wipe()),
    close: () => store.close(),
  };
}
