// Short (`npm test`): the benchmarks' own arithmetic, and that a quick run goes through. No figure is judged here.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, describe } from "vitest";
import { line, type Line } from "../bench/result.ts";
import { inFlight, interleave } from "../bench/rounds.ts";
import { median, percentile, ratios } from "../bench/stats.ts";

const BENCH = fileURLToPath(new URL("../scripts/bench.mjs", import.meta.url));

describe("figures", () => {
  it("have a median and percentiles", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(percentile(hundred, 0.99)).toBe(99);
    expect(percentile(hundred, 0.5)).toBe(50);
    expect(percentile([7], 0.99)).toBe(7);
  });

  it("are compared round by round, so a slow round does not count against one side", () => {
    expect(ratios([100, 10, 100], [50, 5, 50])).toEqual({ median: 2, min: 2, max: 2 });
    expect(ratios([1, 2, 6], [1, 1, 2])).toEqual({ median: 2, min: 1, max: 3 });
    expect(() => ratios([1], [1, 2])).toThrow(/same number/);
  });

  it("are judged by their median: a ratio, or the figure itself where there is no other side", () => {
    const side = (...rounds: number[]) => ({ label: "side", unit: "x", rounds });
    const parts = { row: "P0", what: "work" };
    const atLeast = { is: "at least", value: 1.2 } as const;
    expect(line({ ...parts, ours: side(120), theirs: side(100), target: atLeast }).met).toBe(true);
    expect(line({ ...parts, ours: side(119), theirs: side(100), target: atLeast }).met).toBe(false);
    expect(line({ ...parts, ours: side(80, 90, 99), target: { is: "at most", value: 90 } }).met).toBe(true);
    expect(line({ ...parts, ours: side(80) })).toMatchObject({ value: { median: 80 } });
    expect(line({ ...parts, ours: side(80) })).not.toHaveProperty("met");
  });
});

describe("rounds", () => {
  it("take the sides in turn, every other round backwards, and do not count the first", async () => {
    const order: string[] = [];
    let round = 0;
    const side = (name: string) => () => {
      order.push(name);
      return Promise.resolve(round++);
    };
    const figures = await interleave(3, [side("a"), side("b")]);
    expect(order.join("")).toBe("abbaabba");
    expect(figures).toEqual([
      [3, 4, 7],
      [2, 5, 6],
    ]);
  });

  it("keep as many calls under way as there are callers", async () => {
    let underWay = 0;
    let most = 0;
    const perSecond = await inFlight(5, 30, async () => {
      most = Math.max(most, ++underWay);
      await new Promise((resolve) => setImmediate(resolve));
      underWay -= 1;
    });
    expect(most).toBe(5);
    expect(perSecond).toBeGreaterThan(0);
  });
});

describe("npm run bench", () => {
  it("measures, prints and writes what it measured", () => {
    const out = mkdtempSync(join(tmpdir(), "fleet-bench-test-"));
    try {
      const run = bench("streams", "--quick", "--rounds", "1", "--only", "p1,P2,P4", "--out", out);
      expect(run.stderr).toBe("");
      expect(run.status).toBe(0);
      expect(run.stdout).toMatch(/redis \d+\.\d+/);
      expect(run.stdout).toMatch(/ratio [\d.]+ \([\d.]+ to [\d.]+\) +target <= 1\.35/);
      const [file = ""] = readdirSync(out);
      const report = JSON.parse(readFileSync(join(out, file), "utf8")) as { suite: string; lines: Line[] };
      expect(report.suite).toBe("streams");
      expect(report.lines.map(({ row }) => row)).toEqual(["P1", "P1", "P1", "P1", "P2", "P4"]);
      for (const { ours, theirs, value } of report.lines) {
        expect(value.median).toBeCloseTo((ours.rounds[0] as number) / (theirs?.rounds[0] as number), 6);
      }
    } finally {
      rmSync(out, { recursive: true, force: true });
    }
  }, 120_000);

  it("refuses what it does not know", () => {
    for (const args of [["nothing"], ["streams", "--only", "P99"]]) {
      const run = bench(...args);
      expect(run.status).toBe(2);
      expect(run.stderr).toContain("npm run bench -- <suite>");
    }
  }, 120_000);
});

function bench(...args: string[]) {
  return spawnSync(process.execPath, [BENCH, ...args], { encoding: "utf8" });
}
