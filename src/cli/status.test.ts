import { expect, test } from "vitest";
import type { SlotStatus, WorkerRecord } from "../protocol/status.ts";
import type { FleetView } from "../store/store.ts";
import { statusReport } from "./status-report.ts";
import { renderStatus } from "./status-view.ts";

const NOW = 1_800_000_000_000;
const PLAIN = { bold: (text: string) => text, dim: (text: string) => text };

function worker(id: string, fields: Partial<WorkerRecord> = {}): WorkerRecord {
  return {
    id,
    incarnation: `${id}-1`,
    host: "host",
    pid: 7,
    version: "0.1.0",
    startedAt: NOW - 60_000,
    capacity: 10,
    labels: {},
    automations: ["pinger"],
    draining: false,
    generation: 1,
    lastSeenAt: NOW - 1500,
    expiresAt: NOW + 5000,
    slots: [],
    ...fields,
  };
}

function slot(slotId: number, fields: Partial<SlotStatus> = {}): SlotStatus {
  return {
    automation: "pinger",
    slotId,
    state: "running",
    since: NOW - 90_000,
    iterations: 42,
    restarts: 1,
    generation: 1,
    lastError: null,
    reason: null,
    lastCause: null,
    lastProgressAt: null,
    waiting: false,
    pid: null,
    memoryMb: 0,
    cpuPercent: 0,
    loopLagMs: 0,
    ...fields,
  };
}

function view(fields: Partial<FleetView> & { slots?: number; paused?: boolean }): FleetView {
  const { slots = 1, paused = false, ...rest } = fields;
  const changedBy = { slots: "deploy", config: "deploy" };
  return {
    now: NOW,
    revision: 1,
    workers: [],
    desired: { pinger: { slots, config: {}, paused, generation: 3, deployed: {}, changedBy } },
    assignments: {},
    leases: [],
    leader: null,
    ...rest,
  };
}

function lease(slotId: number, workerId: string) {
  return {
    automation: "pinger",
    slotId,
    workerId,
    incarnation: `${workerId}-1`,
    token: "1",
    expiresAt: NOW + 3000,
  };
}

function onlySlot(facts: Parameters<typeof view>[0]) {
  return statusReport(view(facts)).automations.find(({ name }) => name === "pinger")?.slot_list[0];
}

test("a running slot", () => {
  const facts = { workers: [worker("w1", { slots: [slot(0)] })], leases: [lease(0, "w1")] };
  expect(onlySlot(facts)).toEqual({
    slot_id: 0,
    state: "running",
    worker: "w1",
    in_state_seconds: 90,
    iterations: 42,
    restarts: 1,
    last_error: null,
    reason: null,
  });
});

const OFFLINE = { expiresAt: NOW, slots: [slot(0)] };
test.each<[string, Parameters<typeof view>[0], string]>([
  [
    "nobody knows it",
    { workers: [worker("w1", { automations: ["other"] })] },
    "no live worker has this automation",
  ],
  ["paused", { workers: [worker("w1")], paused: true }, "the automation is paused"],
  ["all draining", { workers: [worker("w1", { draining: true })] }, "all workers that have it are draining"],
  [
    "full",
    { workers: [worker("w1", { capacity: 1 })], leases: [lease(9, "w1")] },
    "no capacity left on the workers that have it",
  ],
  [
    "assigned",
    { workers: [worker("w1")], assignments: { pinger: { 0: "w1" } } },
    "assigned to w1, about to start",
  ],
  ["not assigned", { workers: [worker("w1")] }, "not assigned yet"],
  [
    "its worker died",
    { workers: [worker("w1", OFFLINE)] },
    "worker w1 is offline; no live worker has this automation",
  ],
  [
    "to be taken over",
    { workers: [worker("w1", OFFLINE), worker("w2")] },
    "worker w1 is offline; not assigned yet",
  ],
])("why it waits: %s", (_, facts, reason) => {
  expect(onlySlot(facts)).toMatchObject({ state: "waiting", reason });
});

test("the live lease holder's word counts, not that of a worker that is gone", () => {
  const workers = [
    worker("w2", { slots: [slot(0, { iterations: 5 })] }),
    worker("w1", { expiresAt: NOW, slots: [slot(0, { iterations: 99, since: NOW })] }),
  ];
  expect(onlySlot({ workers, leases: [lease(0, "w2")] })).toMatchObject({ worker: "w2", iterations: 5 });
});

test("slots on their way out are listed, ended ones are not", () => {
  const slots = [slot(0), slot(1, { state: "stopping" }), slot(2, { state: "stopped" })];
  const report = statusReport(view({ workers: [worker("w1", { slots })], leases: [lease(0, "w1")] }));
  expect(report.automations[0]?.slot_list.map(({ slot_id: id }) => id)).toEqual([0, 1]);
});

test("as text", () => {
  const failing = slot(1, {
    state: "backing-off",
    since: NOW - 2000,
    lastError: "boom\nagain",
    reason: "restarts in 4 s",
  });
  const workers = [
    worker("w2", { expiresAt: NOW, lastSeenAt: NOW - 200_000 }),
    worker("w1", { slots: [slot(0), failing], automations: ["pinger", "idle"] }),
  ];
  const text = renderStatus(
    statusReport(view({ slots: 2, workers, leases: [lease(0, "w1"), lease(1, "w1")] })),
    PLAIN,
  );
  expect(text.split("\n")).toEqual([
    "WORKER  STATE    HOST  PID  LAST BEAT  SLOTS",
    "w1      online   host    7        1 s   2/10",
    "w2      offline  host    7   3 m 20 s   0/10",
    "",
    "idle  nothing deployed yet",
    "",
    "pinger  1 of 2 slots running, generation 3",
    "  SLOT  STATE             FOR  WORKER  ITERATIONS  RESTARTS  NOTE",
    "     0  running      1 m 30 s  w1              42         1",
    "     1  backing-off       2 s  w1              42         1  restarts in 4 s; last error: boom\\nagain",
    "",
  ]);
});

test("an empty store says what to do", () => {
  expect(renderStatus(statusReport(view({ desired: {} })), PLAIN)).toContain('start one with "fleet up"');
});
