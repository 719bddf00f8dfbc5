import { describe, expect, it } from "vitest";
import { RawJson } from "../handler.ts";
import { callerOf } from "./caller.ts";
import { eventStream } from "./event-stream.ts";
import { RequestProblem } from "./request-problem.ts";

/** Yields what it is given, then waits for its end as a handler does: it hears of that by the signal alone. */
function handler(items: readonly unknown[], signal: AbortSignal) {
  let ended: () => void = () => undefined;
  const over = new Promise<void>((resolve) => (ended = resolve));
  async function* source() {
    try {
      yield* items;
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    } finally {
      ended();
    }
  }
  return { source: source(), over };
}

const setUp = (items: readonly unknown[]) => {
  const request = new AbortController();
  const stopping = new AbortController();
  const caller = callerOf(request.signal, stopping.signal);
  const { source, over } = handler(items, caller.signal);
  const reader = eventStream(source, caller)
    .body?.pipeThrough(new TextDecoderStream())
    .getReader() as ReadableStreamDefaultReader<string>;
  return { request, stopping, reader, over };
};

describe("a stream of events", () => {
  it("says that it is open, then one event after the other, with texts of JSON as they are", async () => {
    const { reader } = setUp([{ a: 1 }, new RawJson('{"big":12345678901234567890}')]);
    const read = async () => (await reader.read()).value;
    expect(await read()).toBe(": open\n\n");
    expect(await read()).toBe('data: {"a":1}\n\n');
    expect(await read()).toBe('data: {"big":12345678901234567890}\n\n');
    await reader.cancel();
  });

  it("ends its handler when the reader goes, though nothing happens that it could yield", async () => {
    const { reader, over } = setUp([1]);
    await reader.read();
    await reader.read();
    await reader.cancel();
    await expect(over).resolves.toBeUndefined();
  });

  it.each(["request", "stopping"] as const)("ends with the %s", async (which) => {
    const parts = setUp([]);
    await parts.reader.read();
    parts[which].abort();
    expect(await parts.reader.read()).toEqual({ done: true, value: undefined });
    await parts.over;
  });

  it("tells an error as an event on one line, and ends", async () => {
    const caller = callerOf(new AbortController().signal, new AbortController().signal);
    // oxlint-disable-next-line require-yield -- it fails before there is anything to yield.
    async function* source(): AsyncGenerator<never> {
      await Promise.resolve();
      throw new RequestProblem(503, "FLEET_STORE_UNAVAILABLE", "two\nlines");
    }
    const text = await eventStream(source(), caller).text();
    expect(text).toBe(": open\n\nevent: error\ndata: two lines\n\n");
  });
});
