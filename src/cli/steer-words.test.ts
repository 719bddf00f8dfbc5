import { expect, test } from "vitest";
import { recycle, scale } from "../control/desire.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import type { WorkerRecord } from "../protocol/status.ts";
import type { FleetView } from "../store/store.ts";
import { list, steered, type Verb, wordsOf } from "./steer-words.ts";

const NOW = 1_800_000_000_000;
const BASE: DesiredAutomation = {
  slots: 3,
  config: {},
  paused: false,
  generation: 4,
  deployed: {},
  changedBy: { slots: "deploy", config: "deploy" },
};
const WORKER: WorkerRecord = {
  id: "w1",
  incarnation: "i",
  host: "h",
  pid: 1,
  version: "0",
  startedAt: NOW,
  capacity: 4,
  labels: {},
  automations: ["a"],
  draining: false,
  generation: 1,
  lastSeenAt: NOW,
  expiresAt: NOW + 10_000,
  slots: [],
};

interface Case {
  verb?: Verb;
  before?: DesiredAutomation | undefined;
  desired?: DesiredAutomation | undefined;
  slotId?: number;
  workers?: WorkerRecord[];
  health?: Parameters<typeof steered>[0]["health"];
}

function says({ verb = "scale", before, desired = BASE, slotId, workers = [WORKER], health = {} }: Case) {
  const view: FleetView = {
    now: NOW,
    revision: 1,
    workers,
    desired: { a: desired },
    assignments: {},
    leases: [],
    leader: null,
    damaged: [],
  };
  return wordsOf(steered({ verb, name: "a", slotId, before, desired, view, health }));
}

const to = (slots: number) => ({ ...BASE, slots, generation: 5 });
const PAUSED = { ...BASE, paused: true, generation: 5 };
const BROKEN = {
  history: [],
  failures: 12,
  spent: [],
  circuit: { since: NOW, reason: "12 failures", version: "v", recycles: 0 },
};

test.each<[string, Case]>([
  ['"a" has 3 slots already; nothing was changed.', {}],
  ['"a" is paused already; nothing was changed.', { verb: "pause" }],
  ['"a" is not paused; nothing was changed.', { verb: "resume" }],
  ['"a" has no slots; nothing was changed.', { verb: "recycle" }],
  ['"a" goes from 3 to 4 slots (generation 5). Slot 3 will start.', { before: BASE, desired: to(4) }],
  ['"a" goes from 3 to 1 slot (generation 5). Slots 1 and 2 will end.', { before: BASE, desired: to(1) }],
  [
    '"a" goes from 3 to 6 slots (generation 5). Slots 3 to 5 will start. 2 of 6 slots must wait: no room: the workers that know "a" are at their capacity.',
    { before: BASE, desired: to(6) },
  ],
  [
    '"a" goes from 3 to 4 slots (generation 5). Slot 3 will start. 4 of 4 slots must wait: no worker is online.',
    { before: BASE, desired: to(4), workers: [] },
  ],
  [
    '"a" goes from 3 to 4 slots (generation 5). It is paused: nothing runs until "fleet resume a".',
    { before: BASE, desired: { ...to(4), paused: true }, workers: [] },
  ],
  [
    '"a" is paused; its 3 slots will end (generation 5). "fleet resume a" starts them again.',
    { verb: "pause", before: BASE, desired: PAUSED },
  ],
  [
    '"a" is resumed; its 3 slots will start (generation 6).',
    { verb: "resume", before: PAUSED, desired: { ...BASE, generation: 6 } },
  ],
  [
    '"a" is recycled; its 3 slots will move to fresh processes, one by one (generation 5). The open circuit of slots 0 and 2 is closed: they start again.',
    { verb: "recycle", before: BASE, desired: recycle(BASE), health: { "a/0": BROKEN, "a/2": BROKEN } },
  ],
  [
    '"a" is recycled; its slot will move to a fresh process (generation 6).',
    { verb: "recycle", before: to(1), desired: recycle(to(1)) },
  ],
  [
    'Slot 2 of "a" is recycled; it will move to a fresh process (generation 5). The open circuit of slot 2 is closed: it starts again.',
    {
      verb: "recycle",
      slotId: 2,
      before: BASE,
      desired: recycle(BASE, 2),
      health: { "a/0": BROKEN, "a/2": BROKEN },
    },
  ],
])("%s", (words, facts) => {
  expect(says(facts)).toBe(words);
});

test("of ten thousand slots, in no time", () => {
  const started = performance.now();
  const facts = {
    before: BASE,
    desired: scale(BASE, 10_000, "x"),
    workers: [{ ...WORKER, capacity: 10_000 }],
  };
  expect(says(facts)).toContain("Slots 3 to 9999 will start");
  expect(performance.now() - started).toBeLessThan(10_000);
});

test("lists of slots", () => {
  expect(list([4])).toBe("slot 4");
  expect(list([4, 9])).toBe("slots 4 and 9");
  expect(list([4, 5, 6])).toBe("slots 4 to 6");
  expect(list([1, 3, 5])).toBe("slots 1, 3, 5");
  expect(list([0, 2, 4, 6, 8, 10, 12, 14, 16, 18])).toBe("slots 0, 2, 4, 6, 8, 10, 12, 14 and 2 more");
});
