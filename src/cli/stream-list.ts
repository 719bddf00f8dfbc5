import type { Store, StreamStats } from "../store/store.ts";
import { readEach } from "./read-each.ts";
import { type Column, duration, renderTable } from "./table.ts";

/** One line of `fleet stream ls --json`. */
export interface StreamLine {
  name: string;
  length: number;
  max_length: number;
  ttl_seconds: number;
  /** Age of the oldest entry in seconds; null when empty. */
  oldest_seconds: number | null;
  pushed: number;
  popped: number;
  trimmed: number;
  expired: number;
  /** Entries that a consumer could not use; the newest of them are kept in quarantine. */
  invalid: number;
}

const COUNTERS = ["pushed", "popped", "trimmed", "expired", "invalid"] as const;

const COLUMNS: readonly Column<StreamLine>[] = [
  { title: "STREAM", text: ({ name }) => name },
  { title: "LENGTH", align: "right", text: ({ length }) => String(length) },
  { title: "MAX", align: "right", text: (line) => String(line.max_length) },
  {
    title: "OLDEST",
    align: "right",
    text: ({ oldest_seconds: oldest }) => (oldest === null ? "-" : duration(oldest * 1000)),
  },
  ...COUNTERS.map((counter): Column<StreamLine> => ({
    title: counter.toUpperCase(),
    align: "right",
    text: (line) => String(line[counter]),
  })),
];

export async function listStreams(store: Store): Promise<StreamLine[]> {
  const [now, names] = await Promise.all([store.now(), store.streams.list()]);
  const all = await readEach("stream", names, (name) => store.streams.stats({ stream: name }));
  return all.map(({ name, found }) => streamLine(name, found, now));
}

export function streamLine(name: string, stats: StreamStats, now: number): StreamLine {
  const { length, bounds, oldestTs, pushed, popped, trimmed, expired, invalid } = stats;
  return {
    name,
    length,
    max_length: bounds.maxLength,
    ttl_seconds: bounds.ttlMs / 1000,
    oldest_seconds: oldestTs === null ? null : Math.max(0, now - oldestTs) / 1000,
    pushed,
    popped,
    trimmed,
    expired,
    invalid,
  };
}

export function renderStreams(lines: readonly StreamLine[], paintTitle: (text: string) => string): string {
  return lines.length === 0 ? "There are no streams yet.\n" : `${renderTable(lines, COLUMNS, paintTitle)}\n`;
}
