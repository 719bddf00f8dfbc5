/** What travels on the event bus: JSON with these very fields. */
export interface BusEvent {
  topic: string;
  /** Store time of the publish, Unix milliseconds. */
  ts: number;
  /** Who published: `automation/slot`, a worker's id, or a client's. */
  source: string;
  /** 1, 2, 3, … per topic, taken in the publishing step. */
  seq: number;
  /** The fleet's id: pub/sub ignores database numbers, so foreign events are told by it and dropped. */
  fleet: string;
  payload: unknown;
}

/** Topics by which workers prove to themselves that they receive: this and the worker's id. */
export const PROBE_PREFIX = "fleet.probe.";

/** Topics on which a worker is asked what its children say to payloads: this and the worker's incarnation. See `protocol/verdict.ts`. */
export const ASK_PREFIX = "fleet.ask.";
/** Topics on which it answers: this and the id of whoever asks. */
export const ANSWER_PREFIX = "fleet.answer.";

const BACKGROUND = [PROBE_PREFIX, ASK_PREFIX, ANSWER_PREFIX];

/** Whether whoever follows these patterns wants this topic: what Fleet says to itself is nobody's news, unless it is asked for. */
export function isNews(topic: string, patterns: readonly string[]): boolean {
  const prefix = BACKGROUND.find((one) => topic.startsWith(one));
  return prefix === undefined || patterns.some((pattern) => pattern.startsWith(prefix));
}

/** Most bytes of one event's payload as JSON. */
export const MAX_EVENT_BYTES = 65_536;

export function decodeEvent(raw: string): BusEvent | undefined {
  try {
    const event = JSON.parse(raw) as Partial<BusEvent> | null;
    const whole =
      typeof event?.topic === "string" &&
      typeof event.seq === "number" &&
      typeof event.fleet === "string" &&
      typeof event.ts === "number";
    return whole ? (event as BusEvent) : undefined;
  } catch {
    return undefined;
  }
}

/** True when `topic` matches `pattern`, where `*` is any run of characters. Linear in both lengths. */
export function matchesTopic(pattern: string, topic: string): boolean {
  const parts = pattern.split("*");
  if (parts.length === 1) return pattern === topic;
  const first = parts[0] as string;
  const last = parts.at(-1) as string;
  if (topic.length < first.length + last.length || !topic.startsWith(first) || !topic.endsWith(last))
    return false;
  let from = first.length;
  const end = topic.length - last.length;
  for (const part of parts.slice(1, -1)) {
    const at = topic.indexOf(part, from);
    if (at < 0 || at + part.length > end) return false;
    from = at + part.length;
  }
  return true;
}
