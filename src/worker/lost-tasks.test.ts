import { describe, expect, it } from "vitest";
import type { StopReason } from "../automation/context.ts";
import { QUEUE_DEFAULTS } from "../contracts/queue.ts";
import type { Flight } from "./flight-mark.ts";
import type { HostEnd } from "./hosts.ts";
import { lostTasks } from "./lost-tasks.ts";

const task = (id: string, attempts = 0) => ({ id, token: `${id}1`, attempts });
/** Slot 0 runs one task, slot 1 two together. */
const flight: Flight = {
  lastSlot: 0,
  endedBy: null,
  tasks: [
    { slotId: 0, seq: 2, startedAt: 0, timeoutMs: 1000, tasks: [task("a")] },
    { slotId: 1, seq: 1, startedAt: 0, timeoutMs: 1000, tasks: [task("b", 2), task("c")] },
  ],
};
const tasks = {
  queue: "q",
  schema: {},
  resultSchema: null,
  options: { ...QUEUE_DEFAULTS, backoff: { baseSeconds: 1, capSeconds: 60, jitter: 0 } },
};
const end = (change: Partial<HostEnd> = {}): HostEnd => ({
  key: "q@1",
  automation: "q",
  tasks,
  holder: "i.1",
  orderly: false,
  exit: { code: null, signal: "SIGKILL", flight, stderr: "" },
  lastWords: undefined,
  killedFor: undefined,
  ...change,
});
const lost = (
  change: Partial<HostEnd>,
  why: { guilty?: readonly number[]; draining?: boolean; stopReasons?: readonly StopReason[] } = {},
) => {
  const { guilty = [0], draining = false, stopReasons = [] } = why;
  const stopReasonOf = (slotId: number) => stopReasons[slotId] ?? null;
  return lostTasks(end(change), { guilty, error: "gone", draining, stopReasonOf });
};

describe("lostTasks", () => {
  it("counts a crash for the tasks of the slot to blame alone", () => {
    const begun = ["a1", "b1", "c1"];
    expect(lost({})).toEqual({ queue: "q", holder: "i.1", settle: [], crashed: ["a"], begun, error: "gone" });
    expect(lost({}, { guilty: [1] })?.crashed).toEqual(["b", "c"]);
  });

  it("counts one for all where nobody knows whose fault it was, so that no crash goes on for ever", () => {
    expect(lost({}, { guilty: [] })?.crashed).toEqual(["a", "b", "c"]);
  });

  it("counts none for an orderly end, for a drain, and for code that does not let go of a lost lease", () => {
    expect(lost({ orderly: true })?.crashed).toEqual([]);
    expect(lost({ killedFor: "would-not-stop" }, { draining: true })?.crashed).toEqual([]);
    expect(lost({ killedFor: "would-not-stop" }, { stopReasons: ["lease-lost"] })?.crashed).toEqual([]);
    // What breaks its process while that drains has broken it all the same.
    expect(lost({}, { draining: true })?.crashed).toEqual(["a"]);
  });

  it("ends what outlived its timeout as failed attempts, each with its own pause", () => {
    const made = lost({ killedFor: "task-timeout" }, { guilty: [1] });
    expect(made).toMatchObject({
      crashed: [],
      settle: [
        { id: "b", token: "b1", outcome: "failed", reason: "timeout", final: false, retryInMs: 4000 },
        { id: "c", token: "c1", outcome: "failed", reason: "timeout", final: false, retryInMs: 1000 },
      ],
    });
    expect(made?.settle[0]).toMatchObject({
      error: "ran for longer than its timeout of 1 s; it did not end then, so its process was ended",
    });
  });

  it("ends what got stuck and had to be killed as a failed attempt, too, with words of its own", () => {
    const made = lost(
      { killedFor: "would-not-stop" },
      { guilty: [0, 1], stopReasons: ["lease-lost", "stuck"] },
    );
    expect(made).toMatchObject({
      crashed: [],
      settle: [
        { id: "b", token: "b1", outcome: "failed", reason: "timeout", final: false, retryInMs: 4000 },
        { id: "c", outcome: "failed" },
      ],
    });
    expect(made?.settle[0]).toMatchObject({
      error: "no progress for longer than stuckSeconds; it did not end then, so its process was ended",
    });
    // One that broke its process meanwhile has crashed.
    expect(lost({}, { stopReasons: ["stuck"] })).toMatchObject({ crashed: ["a"], settle: [] });
  });

  it("has nothing to say of automations without tasks", () => {
    expect(lost({ tasks: null })).toBeUndefined();
  });
});
