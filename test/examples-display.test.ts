// Short: what the examples print and decide, without a fleet.
import type { WriteStream } from "node:tty";
import { describe, expect, test, vi } from "vitest";
import { describeMeasurement, LiveTable } from "../examples/url-monitor/display.ts";
import { Score } from "../examples/url-monitor/score.ts";
import { judge } from "../examples/host-metrics/hysteresis.ts";

const at = new Date(2026, 0, 2, 14, 3, 4).getTime();
const up = { url: "http://a.test/", ok: true, status: 200, latencyMs: 12.3, error: null, at };
const down = { ...up, ok: false, status: null, latencyMs: 0.2, error: "ECONNREFUSED" };

describe("the URL monitor", () => {
  test("prints one line per measurement", () => {
    const score = new Score();
    score.add(up);
    expect(describeMeasurement(up, score)).toBe("14:03:04 up   200    12 ms  100.0 %  http://a.test/");
    score.add(down);
    score.add(up);
    expect(describeMeasurement(down, score)).toBe(
      "14:03:04 down -       1 ms   66.7 %  http://a.test/  ECONNREFUSED",
    );
  });

  test("averages only what was answered", () => {
    const score = new Score();
    score.add({ ...up, latencyMs: 10 });
    score.add({ ...down, latencyMs: 5000 });
    score.add({ ...up, latencyMs: 30, ok: false, status: 500 });
    expect(score).toMatchObject({ looks: 3, ups: 1, averageMs: 20, slowestMs: 30 });
  });

  test("draws its table over the one before, no higher and wider than the terminal", async () => {
    const written: string[] = [];
    const scores = new Map<string, Score>();
    const terminal = {
      getWindowSize: () => [60, 8],
      write: (text: string) => written.push(text),
    } as unknown as WriteStream;
    const table = new LiveTable(terminal, scores);
    for (const name of "abcdefghij") {
      const score = new Score();
      score.add({ ...up, url: `http://${name}.test/${"x".repeat(80)}` });
      scores.set(name, score);
    }
    table.changed();
    table.changed();
    await vi.waitFor(() => expect(written).toHaveLength(1));
    const lines = written[0]?.trimEnd().split("\n") ?? [];
    expect(lines.length).toBeLessThan(8);
    expect(lines.at(-1)).toBe("… and 6 more");
    table.changed();
    table.close();
    expect(written).toHaveLength(2);
    expect(written[1]?.startsWith(`\u001B[${lines.length}A\r\u001B[J`)).toBe(true);
    table.close();
    expect(written).toHaveLength(2);
  });
});

describe("thresholds", () => {
  const limits = { raisePercent: 80, marginPercent: 5 };

  test("a value that swings around its limit makes one alert", () => {
    let raised = false;
    const verdicts = [79, 80, 78, 81, 76, 80, 75, 74.9, 79.9, 80].map((value) => {
      const verdict = judge(raised, value, limits);
      if (verdict !== "unchanged") raised = verdict === "raised";
      return verdict;
    });
    expect(verdicts.filter((verdict) => verdict !== "unchanged")).toEqual(["raised", "cleared", "raised"]);
    expect(verdicts[1]).toBe("raised");
    expect(verdicts[7]).toBe("cleared");
    expect(verdicts[9]).toBe("raised");
  });
});
