// Short (`npm test`): how consumers wait, on SQLite in memory and with faults put in front of it.
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineStream } from "../src/contracts/stream.ts";
import { FleetError } from "../src/errors.ts";
import { SILENT } from "../src/internal/log.ts";
import { Streams } from "../src/primitives/streams.ts";
import { openStore } from "../src/store/open.ts";
import type { Store, StreamStore } from "../src/store/store.ts";

const NUMBERS = defineStream("numbers", z.number());
const never = () => ({ ready: Promise.resolve(), close: () => Promise.resolve() });

const opened: { store: Store; streams: Streams }[] = [];
afterEach(async () => {
  for (const { store, streams } of opened.splice(0)) {
    await streams.close();
    await store.close();
  }
});

/** Streams on a store of which some methods are replaced; `calls` counts what reaches the store. */
async function setup(replace: (inner: StreamStore) => Partial<StreamStore> = () => ({}), pollMs = 1000) {
  const store = await openStore("sqlite::memory:");
  const calls: Record<string, number> = {};
  const replaced: Partial<StreamStore> = replace(store.streams);
  const streamStore = new Proxy(store.streams, {
    get: (target, key: keyof StreamStore) => {
      const method = (replaced[key] ?? target[key]) as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        calls[key] = (calls[key] ?? 0) + 1;
        return method.apply(target, args);
      };
    },
  });
  const streams = new Streams(
    { ...store, fleetId: store.fleetId, streams: streamStore },
    { log: SILENT, pollMs },
  );
  opened.push({ store, streams });
  return { store, streams, calls };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe("a waiting pop", () => {
  it("wakes by the hint, well before the poller would look", async () => {
    const { streams, calls } = await setup(undefined, 60_000);
    const stream = streams.handle(NUMBERS);
    const popped = stream.pop({ n: 10, waitSeconds: 20 });
    await pause(50);
    const before = calls.pop ?? 0;
    await stream.push(7);
    expect(await popped).toEqual([7]);
    // It had looked while it was empty, and looked again once it was woken.
    expect(before).toBeGreaterThanOrEqual(1);
    expect(calls.pop).toBeLessThanOrEqual(before + 2);
  });

  it("comes back empty after its time", async () => {
    const { streams } = await setup();
    const started = performance.now();
    expect(await streams.handle(NUMBERS).pop({ waitSeconds: 0.2 })).toEqual([]);
    expect(performance.now() - started).toBeGreaterThanOrEqual(190);
  });

  it("finds what came when every hint is lost, within the poll interval", async () => {
    const { streams, calls } = await setup(() => ({ watch: never }), 100);
    const stream = streams.handle(NUMBERS);
    const popped = stream.pop({ waitSeconds: 20 });
    await pause(30);
    await stream.push(7);
    expect(await popped).toEqual([7]);
    expect(calls.watch).toBe(1);
  });

  it("looks by itself about once per interval, however many wait for however many streams", async () => {
    const { streams, calls } = await setup(undefined, 100);
    const abort = new AbortController();
    const waits = Array.from({ length: 20 }, (_, i) =>
      streams
        .consumer(defineStream(`s${i % 5}`, z.number()), { signal: abort.signal })
        .pop({ waitSeconds: 60 }),
    );
    await pause(100);
    const before = calls.pop ?? 0;
    const started = performance.now();
    await pause(1000);
    const looks = (calls.pop ?? 0) - before;
    expect(looks).toBeGreaterThan(0);
    expect(looks).toBeLessThanOrEqual((performance.now() - started) / 100 + 2);
    abort.abort();
    await Promise.all(waits);
  });

  it("wakes as many waiters as there are entries, one after the other", async () => {
    const { streams, calls } = await setup(undefined, 60_000);
    const warned: Error[] = [];
    const onWarning = (warning: Error) => void warned.push(warning);
    process.on("warning", onWarning);
    const stream = streams.handle(NUMBERS);
    const popped = Array.from({ length: 30 }, () => stream.pop({ waitSeconds: 20 }));
    await pause(50);
    const before = calls.pop ?? 0;
    await Promise.all(Array.from({ length: 30 }, (_, n) => stream.push(n)));
    const got = (await Promise.all(popped)).flat();
    expect(got.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, n) => n));
    // One look per entry, and a few that found nothing: not one per waiter and entry.
    expect((calls.pop ?? 0) - before).toBeLessThanOrEqual(70);
    // Node would call so many listeners on one signal a leak.
    process.off("warning", onWarning);
    expect(warned).toEqual([]);
  });

  it("ends on abort and when the streams are closed", async () => {
    const { streams } = await setup(undefined, 60_000);
    const abort = new AbortController();
    const aborted = streams
      .consumer(NUMBERS, { signal: abort.signal })
      .pop({ waitSeconds: Number.POSITIVE_INFINITY });
    const consumer = streams.consumer(NUMBERS);
    const closed = consumer.next();
    await pause(20);
    abort.abort();
    expect(await aborted).toEqual([]);
    await streams.close();
    expect(await closed).toBeUndefined();
    // What a slot's code still asks for at its end is answered in silence.
    expect(await consumer.pop({ waitSeconds: 60 })).toEqual([]);
  });

  it("reports its waits and what it took", async () => {
    const { streams } = await setup();
    const seen: string[] = [];
    const activity = {
      progress: () => void seen.push("progress"),
      waiting: (on: boolean) => void seen.push(on ? "waits" : "goes on"),
    };
    const stream = streams.consumer(NUMBERS, { activity });
    await stream.pop();
    expect(seen).toEqual([]);
    await streams.handle(NUMBERS).push(1);
    await stream.pop();
    await stream.pop({ waitSeconds: 0.01 });
    expect(seen).toEqual(["progress", "waits", "goes on"]);
  });
});

describe("a store that fails", () => {
  const failing = (failures: number, error: FleetError) => (inner: StreamStore) => {
    let left = failures;
    return {
      pop: (args: { stream: string; n: number }) => (left-- > 0 ? Promise.reject(error) : inner.pop(args)),
    };
  };
  const away = new FleetError("FLEET_STORE_UNAVAILABLE", "away", { retryable: true });

  it("is ridden out by a waiting pop", async () => {
    const { streams, calls } = await setup(failing(3, away));
    const stream = streams.handle(NUMBERS);
    await stream.push(5);
    expect(await stream.pop({ waitSeconds: 20 })).toEqual([5]);
    expect(calls.pop).toBe(4);
  });

  it("is told to a pop that does not wait, and to one whose time is up", async () => {
    const { streams } = await setup(failing(1000, away));
    await expect(streams.handle(NUMBERS).pop()).rejects.toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" });
    await expect(streams.handle(NUMBERS).pop({ waitSeconds: 0.3 })).rejects.toMatchObject({
      retryable: true,
    });
  });

  it("is told at once where trying again is of no use", async () => {
    const { streams, calls } = await setup(failing(1000, new FleetError("FLEET_STORE_FAILED", "broken")));
    await expect(streams.handle(NUMBERS).pop({ waitSeconds: 20 })).rejects.toThrow("broken");
    expect(calls.pop).toBe(1);
  });

  it("does not turn good entries into an error when quarantine fails", async () => {
    const { streams } = await setup(() => ({ quarantine: () => Promise.reject(away) }));
    const wider = defineStream("numbers", z.union([z.number(), z.string()]));
    for (const value of ["bad", 2]) await streams.handle(wider).push(value);
    expect(await streams.handle(NUMBERS).pop({ n: 10 })).toEqual([2]);
  });
});
