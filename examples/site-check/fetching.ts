// Asks for an address and says how it answered. Every failure is an answer, except those that are worth another try.
const AGENT = "fleet-site-check (+https://github.com/topics/link-checker)";
const MOST_REDIRECTS = 10;
/** Pages beyond this are cut: a link far down in 10 MB of HTML is not worth the memory. */
const MOST_BYTES = 10 * 1024 * 1024;

export interface Fetched {
  status: number;
  ms: number;
  redirectedTo: string | null;
  error: string | null;
  /** Text of an HTML answer to GET; null for all else. */
  html: string | null;
  bytes: number;
}

/** Thrown for what may be different in a while: the host is too busy, or told us to come later. */
export class TryLater extends Error {
  readonly seconds: number;

  constructor(url: string, status: number, seconds: number) {
    super(`${url} answered ${status}`);
    this.seconds = seconds;
  }
}

export async function ask(url: string, method: "GET" | "HEAD", signal: AbortSignal): Promise<Fetched> {
  const started = performance.now();
  const took = () => Math.round(performance.now() - started);
  try {
    const { response, at } = await follow(url, method, signal);
    if (response.status === 429 || response.status === 503) {
      await response.body?.cancel();
      throw new TryLater(url, response.status, retryAfter(response.headers.get("retry-after")));
    }
    const isHtml = /^(text\/html|application\/xhtml\+xml)\b/.test(response.headers.get("content-type") ?? "");
    const body = method === "GET" && isHtml && response.ok ? await textOf(response) : undefined;
    if (body === undefined) await response.body?.cancel();
    return {
      status: response.status,
      ms: took(),
      redirectedTo: at === url ? null : at,
      error: null,
      html: body?.text ?? null,
      bytes: body?.bytes ?? 0,
    };
  } catch (error) {
    // Told to stop, or told to come later: the task goes back into its queue.
    if (signal.aborted || error instanceof TryLater) throw error;
    return { status: 0, ms: took(), redirectedTo: null, error: reasonOf(error), html: null, bytes: 0 };
  }
}

/** Follows redirects by hand: only so it is known where they lead. */
async function follow(
  url: string,
  method: string,
  signal: AbortSignal,
): Promise<{ response: Response; at: string }> {
  let at = url;
  for (let hops = 0; hops <= MOST_REDIRECTS; hops++) {
    const headers = { "user-agent": AGENT, accept: "text/html,*/*;q=0.8" };
    const response = await fetch(at, { method, headers, redirect: "manual", signal });
    const location = response.headers.get("location");
    if (response.status < 300 || response.status >= 400 || location === null) return { response, at };
    await response.body?.cancel();
    at = new URL(location, at).href;
  }
  throw new Error(`more than ${MOST_REDIRECTS} redirects`);
}

async function textOf(response: Response): Promise<{ text: string; bytes: number }> {
  const decoder = new TextDecoder(charsetOf(response.headers.get("content-type")));
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += (chunk as Uint8Array).byteLength;
    if (bytes <= MOST_BYTES) text += decoder.decode(chunk as Uint8Array, { stream: true });
  }
  return { text: text + decoder.decode(), bytes };
}

function charsetOf(type: string | null): string {
  const named = /charset="?([\w-]+)/i.exec(type ?? "")?.[1] ?? "utf-8";
  try {
    return new TextDecoder(named).encoding;
  } catch {
    return "utf-8";
  }
}

function retryAfter(value: string | null): number {
  const seconds = Number(value);
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 300) : 5;
}

/** "fetch failed" says nothing; its cause does. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? message ?? String(error);
}
