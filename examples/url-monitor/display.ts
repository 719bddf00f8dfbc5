// How `uptime` shows what it knows: a line per measurement, or a table that is drawn over itself.
import type { WriteStream } from "node:tty";
import type { Measurement } from "./contracts.ts";
import type { Score } from "./score.ts";

/** Shortest time between two drawings, in milliseconds. */
const DRAW_MS = 100;
const HEAD = "STATE  STATUS     LATENCY     AVERAGE     SLOWEST  AVAILABLE  LOOKS  URL";

/** `14:03:04 up   200    12 ms  100.0 %  https://example.org/` */
export function describeMeasurement(measurement: Measurement, score: Score): string {
  const { url, ok, status, latencyMs, error, at } = measurement;
  const state = ok ? "up  " : "down";
  const parts = [
    `${clock(at)} ${state} ${String(status ?? "-").padEnd(3)} ${ms(latencyMs, 8)}`,
    percent(score.availability),
    url,
  ];
  return [...parts, ...(error === null ? [] : [error])].join("  ");
}

/** Redraws in place on a terminal, at most ten times a second. */
export class LiveTable {
  readonly #terminal: WriteStream;
  readonly #scores: ReadonlyMap<string, Score>;
  #height = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(terminal: WriteStream, scores: ReadonlyMap<string, Score>) {
    this.#terminal = terminal;
    this.#scores = scores;
  }

  changed(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#draw();
    }, DRAW_MS);
  }

  /** Draws what has not been drawn yet. */
  close(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#draw();
  }

  #draw(): void {
    const [columns, rows] = this.#terminal.getWindowSize();
    const lines = tableLines(this.#scores, rows - 2);
    // Back to where the last table began, and clear from there: the new one takes its place.
    const back = this.#height === 0 ? "" : `\u001B[${this.#height}A\r\u001B[J`;
    const text = lines.map((line) => painted(line.slice(0, columns - 1))).join("\n");
    this.#terminal.write(`${back}${text}\n`);
    this.#height = lines.length;
  }
}

function tableLines(scores: ReadonlyMap<string, Score>, room: number): string[] {
  const rows = [...scores.keys()].toSorted().map((url) => tableRow(scores.get(url) as Score));
  const shown = rows.slice(0, Math.max(1, room - 2));
  const more = rows.length - shown.length;
  return [HEAD, ...shown, ...(more === 0 ? [] : [`… and ${more} more`])];
}

function tableRow(score: Score): string {
  const { last, averageMs, slowestMs, looks } = score;
  if (last === undefined) return "";
  return [
    (last.ok ? "up" : "down").padEnd(5),
    String(last.status ?? "-").padEnd(6),
    ms(last.latencyMs, 10),
    ms(averageMs, 10),
    ms(averageMs === undefined ? undefined : slowestMs, 10),
    percent(score.availability).padStart(9),
    String(looks).padStart(5),
    last.error === null ? last.url : `${last.url}  ${last.error}`,
  ].join("  ");
}

function painted(line: string): string {
  if (process.env.NO_COLOR) return line;
  if (line.startsWith("up")) return `\u001B[32mup\u001B[39m${line.slice(2)}`;
  if (line.startsWith("down")) return `\u001B[31mdown\u001B[39m${line.slice(4)}`;
  return line === HEAD ? `\u001B[1m${line}\u001B[22m` : line;
}

/** Whole milliseconds; what is faster than one still took some time. */
function ms(value: number | undefined, width: number): string {
  return (value === undefined ? "-" : `${Math.max(1, Math.round(value))} ms`).padStart(width);
}

function percent(value: number): string {
  return `${value.toFixed(1).padStart(5)} %`;
}

function clock(at: number): string {
  return new Date(at).toTimeString().slice(0, 8);
}
