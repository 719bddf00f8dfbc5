import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore } from "../store/open.ts";
import type { Store, StreamStore } from "../store/store.ts";
import { followStream } from "./follow-stream.ts";

const STREAM = "out";

async function setUp(count: number) {
  const store = await openStore("sqlite::memory:");
  onTestFinished(() => store.close());
  const bounds = { maxLength: 100_000, ttlMs: 600_000, maxPayloadBytes: 1000 };
  await store.streams.declare({ stream: STREAM, bounds, as: "owner" });
  let pushed = 0;
  let seq = 0;
  const push = async (n: number) => {
    const entries = Array.from({ length: n }, () => {
      const at = pushed++;
      return { id: String(at), head: `{"n":${at},"ts":`, tail: "}" };
    });
    await store.streams.push({ stream: STREAM, entries, op: { producer: "p", seq: ++seq } });
  };
  await push(count);
  return { store, push };
}

/** The store, with `before` run before each of its peeks. */
function peeking(store: Store, before: (args: Parameters<StreamStore["peek"]>[0]) => Promise<void>): Store {
  const streams = new Proxy(store.streams, {
    get: (target, name) =>
      name === "peek"
        ? async (args: Parameters<StreamStore["peek"]>[0]) => {
            await before(args);
            return target.peek(args);
          }
        : (Reflect.get(target, name) as unknown),
  });
  return new Proxy(store, {
    get: (target, name) => (name === "streams" ? streams : (Reflect.get(target, name) as unknown)),
  });
}

function follow(store: Store, last: number, stop = new AbortController()) {
  onTestFinished(() => stop.abort());
  const seen: number[] = [];
  const following = followStream(store, {
    stream: STREAM,
    last,
    onEntry: (raw) => seen.push((JSON.parse(raw) as { n: number }).n),
    onTrouble: () => undefined,
    signal: stop.signal,
  });
  return { ...following, seen };
}

const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

describe("a stream that is followed", () => {
  it.each([0, 3, 1500])("shows the newest %i of several pages, then what comes", async (last) => {
    const { store, push } = await setUp(2500);
    const stop = new AbortController();
    const { ready, ended, seen } = follow(store, last, stop);
    await ready;
    await push(2);
    await vi.waitFor(() => expect(seen).toEqual(numbers(2500 - last, 2502)), { timeout: 5000 });
    stop.abort();
    await ended;
  });

  it("shows all that comes to an empty one", async () => {
    const { store, push } = await setUp(0);
    const { ready, seen } = follow(store, 5);
    await ready;
    await push(1200);
    await vi.waitFor(() => expect(seen).toEqual(numbers(0, 1200)), { timeout: 5000 });
  });

  it("reads one page to find the end, however long the stream, and shows what came behind it", async () => {
    const { store, push } = await setUp(1500);
    let pages = 0;
    const growing = peeking(store, async () => {
      pages += 1;
      if (pages <= 20) await push(1000);
    });
    const { ready, seen } = follow(growing, 0);
    await ready;
    // The second is the first look for more.
    expect(pages).toBeLessThanOrEqual(2);
    // A thousand came right before that.
    await vi.waitFor(() => expect(seen).toEqual(numbers(2500, 21_500)), { timeout: 10_000 });
  });

  it("reads no more once it has been ended", async () => {
    const { store } = await setUp(5000);
    const stop = new AbortController();
    let pages = 0;
    const counted = peeking(store, async () => {
      pages += 1;
      stop.abort();
    });
    const { ended, seen } = follow(counted, 10, stop);
    await ended;
    // The second is the first look for more.
    expect(pages).toBeLessThanOrEqual(2);
    expect(seen.length).toBeLessThanOrEqual(10);
  });

  it("says so where the store does not tell its end", async () => {
    const { store } = await setUp(1);
    const broken = peeking(store, () => Promise.reject(new Error("no store")));
    const { ready, ended } = follow(broken, 0);
    await expect(ready).rejects.toThrow("no store");
    await expect(ended).rejects.toThrow("no store");
  });
});
