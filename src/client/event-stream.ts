// Server-sent events, read from the body of a response.
// Format: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
import { FleetError } from "../errors.ts";

/**
 * The data of each event, parsed as JSON, until the other side ends the stream. Ending the loop ends the request. `onGap` is told how many
 * were left out between two of them, where they do not say so themselves.
 */
export async function* eventsOf<T>(
  response: Response,
  onGap: (missed: number) => void = () => undefined,
): AsyncGenerator<T, void, void> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parse(block);
        if (event === undefined) continue;
        if (event.name === "error")
          throw new FleetError("FLEET_STORE_UNAVAILABLE", event.data, { retryable: true });
        if (event.name === "gap") onGap((JSON.parse(event.data) as { missed: number }).missed);
        else yield JSON.parse(event.data) as T;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Undefined for a block without data: comments keep the link alive. */
function parse(block: string): { name: string; data: string } | undefined {
  let name = "message";
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value = ""] = /^([a-z]+)(?:: ?(.*))?$/.exec(line) ?? [];
    if (field === "event") name = value;
    else if (field === "data") data.push(value);
  }
  return data.length === 0 ? undefined : { name, data: data.join("\n") };
}
