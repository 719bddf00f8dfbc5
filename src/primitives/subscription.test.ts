import { describe, expect, it } from "vitest";
import { FleetError } from "../errors.ts";
import type { BusEvent } from "../protocol/event.ts";
import type { EventStore } from "../store/store.ts";
import { subscribe } from "./subscription.ts";

const any = (value: unknown) => ({ ok: true as const, value });

/** A store whose events and baselines come when the test says so. */
function handStore() {
  let onEvent: (event: BusEvent) => void = () => undefined;
  let resolve: (baselines: ReadonlyMap<string, number>) => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const baselines = new Promise<ReadonlyMap<string, number>>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  const seen = { closed: 0 };
  const store: EventStore = {
    publish: () => Promise.resolve({ seq: 0, ts: 0 }),
    publishMany: () => Promise.resolve([]),
    sweep: () => Promise.resolve({ forgotten: 0 }),
    subscribe: (_, listener) => {
      onEvent = listener;
      const close = () => {
        seen.closed += 1;
        return Promise.resolve();
      };
      return { ready: Promise.resolve(), baselines, close };
    },
  };
  const event = (seq: number) =>
    onEvent({ topic: "t", ts: 1, source: "s", seq, fleet: "f", payload: `p${seq}` });
  return { store, seen, event, ready: () => resolve(new Map()), fail: (error: Error) => reject(error) };
}

describe("a subscription", () => {
  it("serves several readers that wait at once, and ends them all", async () => {
    const { store, event, ready } = handStore();
    const subscription = subscribe({ store, pattern: "t", parse: any });
    ready();
    const readers = [subscription.next(), subscription.next(), subscription.next()];
    event(1);
    event(2);
    const [first, second] = await Promise.all(readers.slice(0, 2));
    expect(new Set([first?.value?.seq, second?.value?.seq])).toEqual(new Set([1, 2]));
    await subscription.close();
    expect(await readers[2]).toEqual({ done: true, value: undefined });
  });

  it("tells a waiting reader at once that it could not be set up, and lets go of it", async () => {
    const { store, seen, fail } = handStore();
    const subscription = subscribe({ store, pattern: "t", parse: any });
    const reader = subscription.next();
    fail(new FleetError("FLEET_STORE_UNAVAILABLE", "away", { retryable: true }));
    await expect(reader).rejects.toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" });
    await expect(subscription.ready).rejects.toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" });
    expect(seen.closed).toBe(1);
    expect(await subscription.next()).toEqual({ done: true, value: undefined });
  });

  it("ends with its signal", async () => {
    const { store, seen, ready } = handStore();
    const stop = new AbortController();
    const subscription = subscribe({ store, pattern: "t", parse: any, signal: stop.signal });
    ready();
    const reader = subscription.next();
    stop.abort();
    expect(await reader).toEqual({ done: true, value: undefined });
    expect(seen.closed).toBe(1);
  });
});
