import { escapeControls } from "../internal/redact.ts";

export interface Column<Row> {
  title: string;
  /** Numbers stand at the right. */
  align?: "right";
  text(row: Row): string;
}

/** Rows in columns as wide as their widest cell, two blanks apart, headed by the titles. */
export function renderTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  paintTitle: (text: string) => string = (text) => text,
): string {
  const cells = rows.map((row) => columns.map((column) => escapeControls(column.text(row))));
  const titles = columns.map(({ title }) => title);
  const widths = columns.map((_, i) =>
    Math.max(...[titles, ...cells].map((line) => (line[i] as string).length)),
  );
  const line = (texts: readonly string[]) =>
    texts
      .map((text, i) =>
        columns[i]?.align === "right" ? text.padStart(widths[i] as number) : text.padEnd(widths[i] as number),
      )
      .join("  ")
      .trimEnd();
  return [paintTitle(line(titles)), ...cells.map(line)].join("\n");
}

/** A duration in its two largest units: `850 ms`, `12 s`, `3 m 20 s`, `5 h 2 m`, `3 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const total = Math.floor(ms / 1000);
  const [d, h, m, s] = [
    Math.floor(total / 86_400),
    Math.floor(total / 3600) % 24,
    Math.floor(total / 60) % 60,
    total % 60,
  ];
  if (d > 0) return `${d} d ${h} h`;
  if (h > 0) return `${h} h ${m} m`;
  return m > 0 ? `${m} m ${s} s` : `${s} s`;
}

export function firstLine(text: string): string {
  return text.split("\n", 1)[0] as string;
}
