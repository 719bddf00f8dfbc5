import { describe, expect, it } from "vitest";
import type { QueueStats } from "../store/queue-store.ts";
import { explainAutomation, explainSlot } from "./explain-automation.ts";
import type { AutomationLine, SlotLine } from "../control/status-report.ts";

const NOW = 1_900_000_000_000;
const slotLike = (over: Partial<SlotLine> = {}): SlotLine => ({
  slot_id: 0,
  state: "running",
  worker: "w1",
  in_state_seconds: 90,
  generation: 1,
  sent_generation: 1,
  rejected: null,
  iterations: 3,
  last_progress_seconds: 2,
  waiting: false,
  task: null,
  restarts: 0,
  last_error: null,
  last_cause: null,
  reason: null,
  pid: 1,
  memory_mb: 1,
  cpu_percent: 1,
  loop_lag_ms: 0,
  circuit: null,
  history: [],
  ...over,
});
const lineLike = (over: Partial<AutomationLine> = {}): AutomationLine => ({
  name: "scraper",
  slots: 2,
  paused: false,
  generation: 1,
  scaled_by: null,
  running: 2,
  versions: [],
  canary: null,
  canary_stopped: null,
  slot_list: [slotLike(), slotLike({ slot_id: 1 })],
  ...over,
});
const stats = {
  counts: { waiting: 3, scheduled: 1, active: 2, completed: 9, failed: 4, cancelled: 0 },
  settings: { concurrency: 0, keyConcurrency: 1 },
  oldestWaitingAt: NOW - 60_000,
  busyKeys: [{ key: "k", active: 1, waiting: 2 }],
} as unknown as QueueStats;
const words = (line: AutomationLine, queue?: QueueStats) =>
  explainAutomation(line, queue, NOW).map(({ message }) => message);

describe("an automation", () => {
  it("all of whose slots run has nothing to explain", () => {
    expect(words(lineLike())).toEqual(["2 of 2 slots run"]);
  });

  it("names what keeps it, or each slot that does not run", () => {
    expect(words(lineLike({ slots: null, running: 0, slot_list: [] }))).toEqual([
      expect.stringContaining('no worker has ever run "scraper"'),
    ]);
    const down = slotLike({ slot_id: 1, state: "circuit-open", reason: "12 failures within 30 m" });
    expect(words(lineLike({ running: 1, slot_list: [slotLike(), down] }))).toEqual([
      "1 of 2 slots run",
      "slot 1 is circuit-open: 12 failures within 30 m",
    ]);
    const paused = lineLike({
      paused: true,
      running: 0,
      versions: [],
      slot_list: [slotLike({ state: "waiting", reason: "paused" })],
    });
    expect(words(paused)).toEqual([
      "0 of 2 slots run",
      '"scraper" is paused; "fleet resume scraper" runs it again',
    ]);
  });

  it("with a queue says what waits there, and for what", () => {
    expect(words(lineLike(), stats).slice(1)).toEqual([
      "3 tasks wait (the oldest was submitted 1 m 0 s ago), 1 is not due yet, 2 run",
      "all 2 slots are busy",
      'key "k" is at its limit (keyConcurrency 1): 1 runs, 2 wait',
      '4 tasks in the dead letter; "fleet task ls scraper --state failed" shows them',
    ]);
    const limited = { ...stats, settings: { ...stats.settings, concurrency: 2 } };
    expect(words(lineLike(), limited)).toContain(
      "as many tasks run as the queue allows at once (concurrency 2)",
    );
    const idle = {
      ...stats,
      counts: { ...stats.counts, waiting: 0, failed: 0 },
      busyKeys: [],
      oldestWaitingAt: null,
    };
    expect(words(lineLike(), idle).slice(1)).toEqual(["0 tasks wait, 1 is not due yet, 2 run"]);
  });
});

describe("a slot", () => {
  it("is explained by what it does, and what it did last", () => {
    expect(explainSlot("scraper", slotLike()).map(({ message }) => message)).toEqual([
      "scraper/0 is running on w1 for 1 m 30 s",
      "its last sign of progress was 2 s ago",
    ]);
    const open = slotLike({
      state: "circuit-open",
      reason: "it failed too often",
      last_error: "Error: no\n  at x",
      circuit: { since: NOW, reason: "" },
    });
    expect(explainSlot("scraper", open).map(({ message }) => message)).toEqual([
      "scraper/0 is circuit-open on w1 for 1 m 30 s: it failed too often",
      "its last error: Error: no",
      '"fleet recycle scraper --slot 0" closes its circuit',
    ]);
  });
});
