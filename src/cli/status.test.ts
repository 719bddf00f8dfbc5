import { expect, test } from "vitest";
import type { SlotHealth } from "../protocol/health.ts";
import type { SlotStatus, WorkerRecord } from "../protocol/status.ts";
import type { FleetView } from "../store/store.ts";
import { statusReport } from "../control/status-report.ts";
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
    damaged: [],
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

const HEAL: SlotHealth["history"][number] = {
  at: NOW - 2000,
  cause: "failed",
  collateral: false,
  exitCode: null,
  signal: null,
  error: "Error: boom\n    at x",
  livedMs: 1500,
};
function health(fields: Partial<SlotHealth>): SlotHealth {
  return { history: [HEAL], failures: 1, spent: [], circuit: null, ...fields };
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
    generation: 1,
    sent_generation: null,
    rejected: null,
    iterations: 42,
    last_progress_seconds: null,
    waiting: false,
    task: null,
    restarts: 1,
    last_error: null,
    last_cause: null,
    reason: null,
    pid: null,
    memory_mb: null,
    cpu_percent: null,
    loop_lag_ms: null,
    circuit: null,
    history: [],
  });
});

const OFFLINE = { expiresAt: NOW, slots: [slot(0)] };
test.each<[string, Parameters<typeof view>[0], string]>([
  [
    "nobody knows it",
    { workers: [worker("w1", { automations: ["other"] })] },
    'the only live worker does not know "pinger"',
  ],
  ["paused", { workers: [worker("w1")], paused: true }, "the automation is paused"],
  [
    "all draining",
    { workers: [worker("w1", { draining: true })] },
    'all workers that know "pinger" are draining',
  ],
  [
    "full",
    { workers: [worker("w1", { capacity: 1 })], leases: [lease(9, "w1")] },
    'no room: the workers that know "pinger" are at their capacity',
  ],
  [
    "assigned",
    { workers: [worker("w1")], assignments: { pinger: { 0: "w1" } } },
    "assigned to w1, about to start",
  ],
  ["not assigned", { workers: [worker("w1")] }, "not assigned yet"],
  ["its worker died", { workers: [worker("w1", OFFLINE)] }, "worker w1 is offline; no worker is online"],
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

test("a worker that is not heard of lately: its slots are not shown as running", () => {
  const quiet = worker("w1", { lastSeenAt: NOW - 4000, expiresAt: NOW + 6000, slots: [slot(0)] });
  const report = statusReport(view({ workers: [quiet], leases: [lease(0, "w1")] }));
  expect(report.workers[0]?.state).toBe("silent");
  expect(report.automations[0]).toMatchObject({
    running: 0,
    slot_list: [
      {
        state: "silent",
        worker: "w1",
        in_state_seconds: 4,
        reason: "w1 was last heard of 4.0 s ago (running then); its slots may be taken in 6.0 s",
      },
    ],
  });
});

test.each([
  ["somebody else holds its lease by now", [lease(0, "w2")], "w2"],
  ["nobody holds its lease any more", [], null],
  ["its lease has expired", [{ ...lease(0, "w1"), expiresAt: NOW }], null],
])("a live worker that still says running does not count where %s", (_, leases, holder) => {
  const workers = [worker("w1", { slots: [slot(0)] }), worker("w2")];
  expect(onlySlot({ workers, leases })).toMatchObject({ state: "waiting", worker: holder });
});

test("a slot's heals and its process", () => {
  const facts = view({
    workers: [worker("w1", { slots: [slot(0, { pid: 99, memoryMb: 80, cpuPercent: 3, loopLagMs: 7 })] })],
    leases: [lease(0, "w1")],
  });
  const killed = { ...HEAL, cause: "killed" as const, exitCode: null, signal: "SIGKILL", collateral: true };
  const report = statusReport(facts, {
    "pinger/0": health({ history: [killed, HEAL] }),
    "pinger/9": health({}),
  });
  expect(report.automations[0]?.slot_list).toMatchObject([
    {
      pid: 99,
      memory_mb: 80,
      cpu_percent: 3,
      loop_lag_ms: 7,
      history: [
        {
          at: NOW - 2000,
          cause: "killed",
          collateral: true,
          exit_code: null,
          signal: "SIGKILL",
          error: "Error: boom\n    at x",
          lived_seconds: 1.5,
        },
        { cause: "failed", collateral: false },
      ],
    },
  ]);
  const wide = renderStatus(report, PLAIN, { wide: true }).split("\n");
  expect(wide.at(-3)).toMatch(/RESTARTS {2}PID {2}MEMORY {2}CPU {3}LAG {2}NOTE$/);
  expect(wide.at(-2)).toMatch(
    / 99 {3}80 MB {2}3 % {2}7 ms {2}last error 2 s ago \(killed, collateral\): Error: boom$/,
  );
});

test("the task that a slot runs", () => {
  const task = { id: "t-1", attempt: 2, count: 1, since: NOW - 3000 };
  const slots = [slot(0, { task }), slot(1, { task: { ...task, attempt: 1, count: 5 } }), slot(2)];
  const facts = view({
    slots: 3,
    workers: [worker("w1", { slots })],
    leases: [0, 1, 2].map((slotId) => lease(slotId, "w1")),
  });
  const report = statusReport(facts);
  expect(report.automations[0]?.slot_list.map((line) => line.task)).toEqual([
    { id: "t-1", attempt: 2, count: 1, seconds: 3 },
    { id: "t-1", attempt: 1, count: 5, seconds: 3 },
    null,
  ]);
  const shown = renderStatus(report, PLAIN, { wide: true });
  expect(shown).toMatch(/RESTARTS {2}TASK +PID/);
  expect(shown).toMatch(/t-1 \(3 s, attempt 2\)[^]*t-1 \+4 \(3 s\)/);
  expect(renderStatus(report, PLAIN)).not.toContain("TASK");
});

test("an open circuit: its worker's word, else what was kept unless it was recycled since", () => {
  const circuit = {
    since: NOW - 9000,
    reason: "12 failures within 30 min; the last: failed: boom",
    version: "v",
    recycles: 1,
  };
  const kept = { "pinger/0": health({ circuit }) };
  const open = slot(0, {
    state: "circuit-open",
    reason: circuit.reason,
    lastError: "boom",
    lastCause: "failed",
  });
  const shown = { since: NOW - 9000, reason: circuit.reason };
  const held = view({ workers: [worker("w1", { slots: [open] })], leases: [lease(0, "w1")] });
  const report = statusReport(held, kept);
  expect(report.automations[0]?.slot_list[0]).toMatchObject({ state: "circuit-open", circuit: shown });
  // The reason says it all: the error does not stand there twice.
  expect(renderStatus(report, PLAIN).match(/boom/g)).toHaveLength(1);

  const closed = view({ workers: [worker("w1", { slots: [slot(0)] })], leases: [lease(0, "w1")] });
  expect(statusReport(closed, kept).automations[0]?.slot_list[0]?.circuit).toBeNull();

  const nobody = (recycles: number) => {
    const facts = view({});
    const desired = { pinger: { ...facts.desired["pinger"]!, recycles } };
    return statusReport({ ...facts, desired }, kept).automations[0]?.slot_list[0];
  };
  expect(nobody(1)).toMatchObject({ state: "waiting", circuit: shown, last_cause: "failed" });
  expect(nobody(2)?.circuit).toBeNull();
});

test("a deaf worker is shown as that", () => {
  const report = statusReport(view({ workers: [worker("w1", { deaf: "a probe did not come back" })] }));
  const text = renderStatus(report, PLAIN);
  expect(text).toContain("online, deaf");
  expect(text).toContain("w1 is deaf: a probe did not come back\n");
  expect(
    statusReport(view({ workers: [worker("w1", { deaf: "x", expiresAt: NOW })] })).workers[0],
  ).toMatchObject({
    state: "offline",
    deaf: null,
  });
});

test("ten thousand slots take no long time", () => {
  const ids = Array.from({ length: 10_000 }, (_, id) => id);
  const busy = worker("w1", { slots: ids.map((id) => slot(id)), capacity: 10_000 });
  const facts = view({ slots: 10_000, workers: [busy], leases: ids.map((id) => lease(id, "w1")) });
  const started = performance.now();
  expect(statusReport(facts).automations[0]?.running).toBe(10_000);
  expect(performance.now() - started).toBeLessThan(10_000);
});

test("as text", () => {
  const failing = slot(1, {
    state: "backing-off",
    since: NOW - 2000,
    lastError: "boom\nagain",
    lastCause: "failed",
    reason: "restarts in 4 s",
  });
  const workers = [
    worker("w2", { expiresAt: NOW, lastSeenAt: NOW - 200_000 }),
    worker("w1", {
      slots: [
        slot(0, { lastProgressAt: NOW - 12_000 }),
        failing,
        slot(2, { waiting: true, lastProgressAt: NOW }),
      ],
      automations: ["pinger", "idle"],
    }),
  ];
  const text = renderStatus(
    statusReport(view({ slots: 3, workers, leases: [0, 1, 2].map((id) => lease(id, "w1")) }), {
      "pinger/1": health({}),
    }),
    PLAIN,
  );
  expect(text.split("\n")).toEqual([
    "WORKER  STATE    HOST  PID  LAST BEAT  SLOTS",
    "w1      online   host    7        1 s   3/10",
    "w2      offline  host    7   3 m 20 s   0/10",
    "",
    "idle  nothing deployed yet",
    "",
    "pinger  2 of 3 slots running, generation 3",
    "  SLOT  STATE             FOR  WORKER  ITERATIONS  PROGRESS  RESTARTS  NOTE",
    "     0  running      1 m 30 s  w1              42      12 s         1",
    "     1  backing-off       2 s  w1              42         -         1  restarts in 4 s; last error 2 s ago (failed): boom",
    "     2  running      1 m 30 s  w1              42     waits         1",
    "",
  ]);
});

test("slots that wait for one and the same thing are one line", () => {
  const text = renderStatus(
    statusReport(
      view({
        slots: 300,
        workers: [worker("w1", { slots: [slot(2)], capacity: 1 })],
        leases: [lease(2, "w1")],
      }),
    ),
    PLAIN,
  );
  const full = 'no room: the workers that know "pinger" are at their capacity';
  expect(text.split("\n").slice(5, -1)).toEqual([
    `      0  waiting         -  -                0         -         0  ${full}`,
    `      1  waiting         -  -                0         -         0  ${full}`,
    "      2  running  1 m 30 s  w1              42         -         1",
    `  3-299  waiting         -  -                0         -         0  ${full}`,
  ]);
});

test("an empty store says what to do", () => {
  expect(renderStatus(statusReport(view({ desired: {} })), PLAIN)).toContain('start one with "fleet up"');
});

test("a worker that is cordoned or is to leave says so, and what it waits for", () => {
  const slots = [
    slot(0, {
      state: "stopping",
      since: NOW - 12_000,
      task: { id: "t1", attempt: 1, count: 1, since: NOW - 60_000 },
    }),
    slot(1, { state: "stopped" }),
  ];
  const drain = { since: NOW - 13_000, until: NOW + 47_000, by: "anna", forced: false };
  const asked = { by: "bert", at: NOW - 5000, incarnation: "w3-1", deadlineMs: 1 };
  const workers = [
    worker("w1", { wish: { cordon: { by: "anna", at: NOW - 60_000 } } }),
    worker("w2", { draining: true, drain, slots }),
    worker("w3", { wish: { drain: asked } }),
    worker("w4", { draining: true, drain: { ...drain, by: null, until: NOW - 1000 } }),
    // Of one that is gone there is nothing to wait for.
    worker("w5", { draining: true, drain, slots, expiresAt: NOW }),
  ];
  const report = statusReport(view({ workers }));
  expect(report.workers[0]?.cordon).toEqual({ by: "anna", seconds: 60 });
  expect(report.workers[1]?.drain).toEqual({
    by: "anna",
    begun: true,
    seconds: 13,
    left_seconds: 47,
    forced: false,
    waits_for: [
      { automation: "pinger", slot_id: 0, state: "stopping", seconds: 12, task: { id: "t1", seconds: 60 } },
    ],
  });
  expect(report.workers[4]?.drain).toBeNull();
  const text = renderStatus(report, PLAIN);
  expect(text).toMatch(/^w1 +online, cordoned /m);
  expect(text).toContain("\nw1 is cordoned by anna for 1 m 0 s: it gets no new slots\n");
  expect(text).toContain(
    "\nw2 drains for 13 s (asked by anna), by force in 47 s; it waits for pinger/0 (stopping for 12 s, task t1 for 1 m 0 s)\n",
  );
  expect(text).toContain("\nw3 was asked to drain by bert 5 s ago and has not begun: ");
  expect(text).toContain("\nw4 drains for 13 s, its deadline passed 1 s ago; no slot runs any more\n");
  expect(text).not.toMatch(/^w5 (drains|was)/m);
});

test("versions that differ and broken contracts are shown", () => {
  const known = (version: string) => ({ pinger: { version, labels: {} } });
  const workers = [worker("w1", { known: known("1") }), worker("w2", { known: known("2") })];
  const manifest = (version: string, type: string) => ({
    name: "pinger",
    kind: "continuous" as const,
    version,
    configSchema: null,
    stateSchema: null,
    output: { stream: "pinger", schema: { type }, maxLength: 1, ttlSeconds: 1, maxPayloadBytes: 1 },
    tasks: null,
    uses: { pop: [{ kind: "stream", name: "pinger", schema: { type: "string" } }] },
    liveConfig: false,
  });
  const manifests = { w1: [manifest("1", "string")], w2: [manifest("2", "null")] };
  const report = statusReport(view({ workers }), {}, manifests);
  expect(report.automations[0]?.versions).toEqual([
    { version: "1", workers: ["w1"] },
    { version: "2", workers: ["w2"] },
  ]);
  expect(report.contracts).toHaveLength(2);
  const text = renderStatus(report, PLAIN);
  expect(text).toContain(", 2 versions: w1 has 1, w2 has 2\n");
  expect(text).toContain(
    'broken contract: stream "pinger" from pinger@2 to pinger@1: the payload is given as null, but taken as a text\n',
  );
  const alone = statusReport(view({ workers: workers.slice(0, 1) }), {}, manifests);
  expect(alone.contracts).toEqual([]);
  expect(renderStatus(alone, PLAIN)).not.toContain("versions:");
});
