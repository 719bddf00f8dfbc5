import { describe, expect, it } from "vitest";
import type { TaskRecord } from "../protocol/task.ts";
import type { QueueStats } from "../store/queue-store.ts";
import { aheadOf, explainTask, type TaskFacts } from "./explain-task.ts";
import type { AutomationLine, SlotLine } from "../control/status-report.ts";

const NOW = 1_900_000_000_000;
const taskLike = (over: Partial<TaskRecord> = {}): TaskRecord => ({
  id: "t1",
  queue: "scraper",
  state: "waiting",
  payload: "{}",
  result: null,
  reason: null,
  error: null,
  priority: 0,
  key: null,
  dedupeKey: null,
  attempts: 0,
  crashes: 0,
  interruptions: 0,
  maxAttempts: 5,
  timeoutMs: 60_000,
  submittedAt: NOW - 10_000,
  dueAt: NOW - 10_000,
  expiresAt: null,
  startedAt: null,
  finishedAt: null,
  worker: null,
  leaseUntil: null,
  cancelling: false,
  tick: null,
  print: null,
  ...over,
});
const statsLike = (
  counts: Partial<QueueStats["counts"]> = {},
  settings: Partial<QueueStats["settings"]> = {},
) =>
  ({
    counts: { waiting: 1, scheduled: 0, active: 0, completed: 0, failed: 0, cancelled: 0, ...counts },
    settings: { concurrency: 0, keyConcurrency: 1, ...settings },
  }) as QueueStats;
const line = (over: Partial<AutomationLine> = {}) =>
  ({ name: "scraper", slots: 2, paused: false, running: 2, slot_list: [], ...over }) as AutomationLine;
const say = (facts: Partial<TaskFacts>) =>
  explainTask({
    task: taskLike(),
    stats: statsLike(),
    automation: line(),
    now: NOW,
    running: [],
    ahead: { higher: 0, earlier: 0, more: false },
    ...facts,
  });
const codes = (facts: Partial<TaskFacts>) => say(facts).map(({ code }) => code);
const words = (facts: Partial<TaskFacts>) => say(facts).map(({ message }) => message);

describe("why a waiting task waits", () => {
  it("nothing is in its way", () => {
    expect(words({})).toEqual(["nothing is in its way: the next free slot claims it"]);
  });

  it("nobody can run it", () => {
    expect(words({ automation: line({ slots: null, running: 0 }) })[0]).toContain(
      'no worker has ever run "scraper"',
    );
    expect(words({ automation: line({ paused: true, running: 0 }) })).toEqual([
      '"scraper" is paused; "fleet resume scraper" runs it again',
    ]);
    expect(words({ automation: line({ slots: 0, running: 0 }) })[0]).toContain("fleet scale scraper 1");
    const slot = { slot_id: 0, state: "waiting", reason: "no worker is online" } as SlotLine;
    expect(words({ automation: line({ running: 0, slot_list: [slot] }) })).toEqual([
      "none of its 2 slots runs: slot 0 is waiting: no worker is online",
    ]);
  });

  it("a limit is reached, or all slots are busy", () => {
    expect(words({ stats: statsLike({ active: 3 }, { concurrency: 3 }) })).toEqual([
      "as many tasks run as the queue allows at once (concurrency 3)",
    ]);
    expect(codes({ stats: statsLike({ active: 2 }, { concurrency: 3 }) })).toEqual(["slots-busy"]);
    expect(codes({ stats: statsLike({ active: 1 }) })).toEqual(["ready"]);
  });

  it("its key is busy", () => {
    const holder = taskLike({ id: "t0", state: "active", key: "k", worker: "w7", startedAt: NOW - 3000 });
    const facts = { task: taskLike({ key: "k" }), running: [holder], stats: statsLike({ active: 1 }) };
    expect(words(facts)).toEqual(['its key "k" is busy: task t0 runs on w7 for 3 s (keyConcurrency 1)']);
    expect(codes({ ...facts, stats: statsLike({ active: 1 }, { keyConcurrency: 2 }) })).toEqual(["ready"]);
    expect(codes({ ...facts, stats: statsLike({ active: 1 }, { keyConcurrency: 0 }) })).toEqual(["ready"]);
  });

  it("others are before it", () => {
    const others = [
      taskLike(),
      taskLike({ id: "h", priority: 1, submittedAt: NOW }),
      taskLike({ id: "e", submittedAt: NOW - 20_000 }),
      taskLike({ id: "later", submittedAt: NOW }),
      taskLike({ id: "low", priority: -1, submittedAt: NOW - 20_000 }),
      taskLike({ id: "keyed", key: "k", submittedAt: NOW - 20_000 }),
    ];
    expect(aheadOf(taskLike(), others)).toEqual({ higher: 1, earlier: 1 });
    expect(words({ ahead: { higher: 1, earlier: 1, more: false } })).toEqual([
      "it is behind 2 tasks (1 of higher priority, 1 submitted earlier without a key); within a priority keys take turns",
    ]);
    expect(
      words({ task: taskLike({ key: "k" }), ahead: { higher: 0, earlier: 1, more: true } })[0],
    ).toContain("behind at least 1 task (1 submitted earlier with its key)");
  });

  it("says what was before, and when it ends", () => {
    const task = taskLike({ crashes: 2, attempts: 1, error: "Error: gone\n  at x", expiresAt: NOW + 5000 });
    expect(words({ task }).slice(1)).toEqual([
      "it has been run before: 1 attempt, 2 crashes",
      "its last error: Error: gone",
      "unless started, it expires in 5 s",
    ]);
  });
});

describe("tasks in other states", () => {
  it("scheduled: delayed, tried again later, or due", () => {
    const dueAt = NOW + 90_000;
    expect(words({ task: taskLike({ state: "scheduled", dueAt }) })).toEqual([
      `it is not to be started before ${new Date(dueAt).toISOString()} (in 1 m 30 s)`,
    ]);
    const again = taskLike({ state: "scheduled", dueAt, attempts: 2, error: "Error: no" });
    expect(words({ task: again })[0]).toMatch(
      /^2 of 5 attempts failed; the next attempt is due at .* \(in 1 m 30 s\)$/,
    );
    expect(codes({ task: again, automation: line({ paused: true, running: 0 }) })).toEqual([
      "retry-later",
      "last-error",
      "paused",
    ]);
    expect(codes({ task: taskLike({ state: "scheduled", dueAt: NOW - 1 }) })).toEqual(["due"]);
  });

  it("active: by whom, for how long, and what ends it", () => {
    const task = taskLike({
      state: "active",
      worker: "w1",
      startedAt: NOW - 20_000,
      leaseUntil: NOW + 5000,
      attempts: 1,
    });
    expect(words({ task })).toEqual([
      "it runs on w1 for 20 s (attempt 2 of 5)",
      "this attempt is timed out in 40 s",
    ]);
    const late = { ...task, startedAt: NOW - 61_000, leaseUntil: NOW, cancelling: true };
    expect(codes({ task: late })).toEqual(["active", "cancelling", "timed-out", "lease-over"]);
    expect(codes({ task: { ...task, timeoutMs: 0 } })).toEqual(["active"]);
  });

  it("ended: how, and what can be done", () => {
    const finishedAt = NOW - 3000;
    const task = taskLike({
      state: "failed",
      reason: "poison",
      crashes: 3,
      error: "Error: exit",
      finishedAt,
    });
    expect(words({ task })).toEqual([
      "it has been in the dead letter (poison) for 3 s, after 3 crashes",
      "its last error: Error: exit",
      '"fleet task retry scraper t1" puts it back',
    ]);
    expect(words({ task: taskLike({ state: "cancelled", finishedAt }) })).toEqual([
      "it was cancelled 3 s ago",
    ]);
    expect(words({ task: taskLike({ state: "completed", attempts: 1, finishedAt }) })).toEqual([
      "it completed 3 s ago, after 1 attempt",
    ]);
    expect(words({ task: taskLike({ state: "failed", reason: "expired", finishedAt }) })[0]).toContain(
      "after no run at all",
    );
  });
});
