import { Gap, RawJson } from "../handler.ts";
import type { Caller } from "./caller.ts";
import { problemOf } from "./request-problem.ts";

/** So often something is sent, so that whatever stands in between does not take the link for dead. */
const KEEP_ALIVE_MS = 15_000;

export const EVENT_STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/**
 * Server-sent events from what a handler yields. The reader sets the pace: nothing is taken from the handler while the connection's own
 * buffer is full. Ends when the handler does, when the caller goes, or when the master ends; an error is an event `error`.
 */
export function eventStream(source: AsyncIterable<unknown>, caller: Caller): Response {
  const { signal } = caller;
  const encoder = new TextEncoder();
  const items = source[Symbol.asyncIterator]();
  let timer: ReturnType<typeof setInterval> | undefined;
  let over = false;
  const end = () => {
    over = true;
    clearInterval(timer);
    // First: a handler that waits for the next thing to tell hears of its end by the signal alone.
    caller.gone();
    void items.return?.(undefined)?.catch(() => undefined);
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      // At once, so that the caller knows it listens.
      controller.enqueue(encoder.encode(": open\n\n"));
      timer = setInterval(() => {
        if (!over && (controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(": alive\n\n"));
      }, KEEP_ALIVE_MS);
      timer.unref();
      const stop = () => {
        if (over) return;
        end();
        controller.close();
      };
      if (signal.aborted) stop();
      else signal.addEventListener("abort", stop, { once: true });
    },
    async pull(controller) {
      try {
        const { done, value } = await items.next();
        if (over) return;
        if (done === true) {
          end();
          controller.close();
          return;
        }
        controller.enqueue(encoder.encode(blockOf(value)));
      } catch (error) {
        if (over) return;
        const { detail } = problemOf(error).problem;
        controller.enqueue(encoder.encode(`event: error\ndata: ${detail.replaceAll(/\s+/g, " ")}\n\n`));
        end();
        controller.close();
      }
    },
    cancel: end,
  });
  return new Response(body, { headers: EVENT_STREAM_HEADERS });
}

function blockOf(value: unknown): string {
  if (value instanceof Gap) return `event: gap\ndata: ${JSON.stringify({ missed: value.missed })}\n\n`;
  // A line break in JSON only ever stands between its parts; here it would end the event's line.
  const text = value instanceof RawJson ? value.text.replaceAll(/[\r\n]/g, " ") : JSON.stringify(value);
  return `data: ${text}\n\n`;
}
