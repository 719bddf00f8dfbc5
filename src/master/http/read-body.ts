import { describe } from "../../contracts/options.ts";
import { RequestProblem } from "./request-problem.ts";

/** A payload may be 64 levels deep, and stands a few below the top. */
const MAX_DEPTH = 68;
/** What `curl -d` says when it is told nothing else. */
const FORM = "application/x-www-form-urlencoded";

/**
 * The object in a request's body; undefined where there is none. It is read as JSON also when its content type is missing or curl's
 * default: whoever has a bearer token is no form of a foreign page. Throws 400, 408, 413 or 415.
 */
export async function readBody(
  request: Request,
  { maxBytes, withinMs }: { maxBytes: number; withinMs: number },
): Promise<object | undefined> {
  const text = await readText(request, maxBytes, withinMs);
  if (text.trim() === "") return undefined;
  checkType(request.headers.get("content-type"));
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw malformed(`the body is no JSON: ${(error as Error).message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw malformed(`the body must be a JSON object, got ${describe(value)}`);
  checkShape(value);
  return value;
}

function checkType(type: string | null): void {
  const essence = type?.split(";")[0]?.trim().toLowerCase() ?? "";
  if (essence === "" || essence === FORM || essence === "application/json" || essence.endsWith("+json"))
    return;
  throw new RequestProblem(
    415,
    "FLEET_REQUEST_INVALID",
    `the body is ${essence}; it must be JSON, with content-type: application/json`,
  );
}

async function readText(request: Request, maxBytes: number, withinMs: number): Promise<string> {
  const tooLarge = () =>
    new RequestProblem(413, "FLEET_REQUEST_INVALID", `the body is larger than ${maxBytes} bytes`);
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
  if (request.headers.has("content-encoding"))
    throw new RequestProblem(
      415,
      "FLEET_REQUEST_INVALID",
      "compressed bodies are not read; send it as it is",
    );
  if (request.body === null) return "";
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of inTime(request.body, withinMs)) {
    size += part.byteLength;
    if (size > maxBytes) throw tooLarge();
    parts.push(part);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(parts));
  } catch {
    throw malformed("the body is no UTF-8");
  }
}

/**
 * The parts of a body, all of them within that time: one that drips would otherwise hold the request for as long as it likes. What is late is
 * left unread, and the connection ends with the answer.
 */
async function* inTime(body: ReadableStream<Uint8Array>, withinMs: number): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooSlow(withinMs)), withinMs);
  });
  late.catch(() => undefined);
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), late]);
      if (done) return;
      yield value;
    }
  } finally {
    clearTimeout(timer);
    // A read may be under way still.
    reader.cancel().catch(() => undefined);
  }
}

function tooSlow(withinMs: number): RequestProblem {
  return new RequestProblem(
    408,
    "FLEET_REQUEST_INVALID",
    `the body was not there as a whole after ${withinMs / 1000} s; nothing was done. Send it faster, or in smaller parts`,
    { headers: { connection: "close" } },
  );
}

/** Neither so deep that walking it fails, nor with a key that is none. */
function checkShape(root: object): void {
  const open: { value: object; depth: number }[] = [{ value: root, depth: 1 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth } = next;
    if (depth > MAX_DEPTH) throw malformed(`the body is nested deeper than ${MAX_DEPTH} levels`);
    if (Object.hasOwn(value, "__proto__")) throw malformed('the body has a key "__proto__"');
    for (const inner of Object.values(value))
      if (typeof inner === "object" && inner !== null)
        open.push({ value: inner as object, depth: depth + 1 });
  }
}

function malformed(message: string): RequestProblem {
  return new RequestProblem(400, "FLEET_REQUEST_INVALID", message);
}
