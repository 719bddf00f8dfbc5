import * as fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { SILENT } from "../internal/log.ts";
import { type HealRecord, HEALTHY, type SlotHealth } from "../protocol/health.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import { openStore } from "../store/open.ts";
import type { FleetView } from "../store/store.ts";
import type { SlotStatus } from "../protocol/status.ts";
import { canaryVerdict, CanaryGuard } from "./canary.ts";
import { canaryLine, type SlotOnTrial } from "./canary-report.ts";
import { setConfig } from "./config-changes.ts";
import { scale } from "./desire.ts";
import { automationLine } from "./status-report.ts";

const SINCE = 1_900_000_000_000;
const desired = (slots: number, onTrial: number): DesiredAutomation => ({
  slots,
  config: { n: 1 },
  canary: { size: { slots: onTrial }, config: { n: 2 }, since: SINCE, generation: 3, by: "jo" },
  paused: false,
  generation: 3,
  deployed: {},
  changedBy: { slots: "deploy", config: "deploy" },
});
const crash = (over: Partial<HealRecord> = {}): HealRecord => ({
  at: SINCE + 1000,
  cause: "failed",
  collateral: false,
  exitCode: null,
  signal: null,
  error: null,
  livedMs: 10,
  ...over,
});
/** Crashes by slot. */
const health = (...counts: number[]): Record<string, SlotHealth> =>
  Object.fromEntries(
    counts.map((count, slotId) => [
      `a/${slotId}`,
      { ...HEALTHY, history: Array.from({ length: count }, () => crash()) },
    ]),
  );
const stops = (state: DesiredAutomation, by: Record<string, SlotHealth>) =>
  canaryVerdict("a", state, { health: by, slots: [] }) !== null;

/** A slot that runs as it did before the canary began, or with what differs from that. */
const slot = (slotId: number, over: Partial<SlotOnTrial> = {}): SlotOnTrial => ({
  slot_id: slotId,
  state: "running",
  generation: 2,
  sent_generation: 2,
  rejected: null,
  reason: null,
  ...over,
});
const refuses = (generation: number, reason = "n: too big"): Partial<SlotOnTrial> => ({
  sent_generation: generation,
  rejected: { generation, reason },
});
const blocked = (sent: number): Partial<SlotOnTrial> => ({
  state: "blocked",
  generation: 0,
  sent_generation: sent,
  reason: "n: too big",
});
const verdict = (state: DesiredAutomation, ...slots: SlotOnTrial[]) =>
  canaryVerdict("a", state, { health: {}, slots });

describe("canaryVerdict", () => {
  it("stops a canary that one of its slots refuses, or is blocked by", () => {
    const others = [slot(2), slot(3)];
    expect(verdict(desired(4, 2), slot(0), slot(1), ...others)).toBeNull();
    expect(verdict(desired(4, 2), slot(0), slot(1, refuses(3)), ...others)).toBe(
      "1 of the 2 slots on trial does not take its config; slot 1: n: too big",
    );
    expect(verdict(desired(4, 2), slot(0, blocked(3)), slot(1, refuses(4)), ...others)).toBe(
      "2 of the 2 slots on trial do not take their config; slot 0: n: too big",
    );
    expect(verdict(desired(1, 1), slot(0, blocked(3)))).toBe(
      "1 of the 1 slot on trial does not take its config; slot 0: n: too big",
    );
    const long = verdict(desired(1, 1), slot(0, refuses(3, "x".repeat(5000))));
    expect(long?.length).toBeLessThan(500);
  });

  it("does not count what was refused before it began, or by newer code only, or as often by the others", () => {
    expect(verdict(desired(2, 1), slot(0, refuses(2)), slot(1))).toBeNull();
    expect(verdict(desired(2, 1), slot(0, blocked(2)), slot(1))).toBeNull();
    expect(verdict(desired(2, 1), slot(0, { ...refuses(4), generation: 3 }), slot(1))).toBeNull();
    expect(verdict(desired(2, 1), slot(0, refuses(3)), slot(1, refuses(2)))).toBeNull();
    expect(verdict(desired(2, 1), slot(0, refuses(3)), slot(1, blocked(2)))).toBeNull();
    expect(
      verdict(desired(4, 2), slot(0, refuses(3)), slot(1, refuses(3)), slot(2, refuses(3)), slot(3)),
    ).toBe(
      "2 of the 2 slots on trial do not take their config, and 1 of the 2 others theirs; slot 0: n: too big",
    );
    // Of slots that are on their way out nothing counts.
    expect(verdict(desired(2, 1), slot(0, refuses(3)), slot(1), slot(2, refuses(3)))).not.toBeNull();
    expect(verdict({ ...desired(2, 1), canary: null }, slot(0, refuses(3)))).toBeNull();
  });

  it("stops a canary of which slots crash at least twice, and more often than the others", () => {
    expect(stops(desired(4, 2), health(1, 0, 0, 0))).toBe(false);
    expect(stops(desired(4, 2), health(1, 1, 0, 0))).toBe(true);
    expect(stops(desired(4, 2), health(1, 1, 1, 1))).toBe(false);
    expect(stops(desired(4, 1), health(2, 1, 1, 1))).toBe(true);
    expect(stops(desired(4, 1), health(2, 3, 2, 1))).toBe(false);
    expect(stops(desired(2, 2), health(1, 1))).toBe(true);
    expect(canaryVerdict("a", desired(4, 1), { health: health(2, 1), slots: [] })).toBe(
      "2 crashes in the 1 slot on trial since it began, 1 in the 3 others",
    );
  });

  it("counts only what the slots themselves bear, since it began", () => {
    const before = [crash({ at: SINCE - 1 }), crash({ at: SINCE - 1 })];
    const others = [crash({ collateral: true }), crash({ cause: "store-lost" }), crash()];
    const of = (history: HealRecord[]) => ({ "a/0": { ...HEALTHY, history } });
    expect(stops(desired(4, 1), of(before))).toBe(false);
    expect(stops(desired(4, 1), of(others))).toBe(false);
    expect(stops(desired(4, 1), of([...others, crash({ at: SINCE, cause: "returned" })]))).toBe(true);
  });

  it("says nothing where there is no canary", () => {
    expect(stops({ ...desired(4, 2), canary: null }, health(9, 9))).toBe(false);
    expect(stops({ ...desired(4, 2), slots: 0 }, health(9, 9))).toBe(false);
  });

  it("stops no canary for crashes of others, and none sooner for fewer of its own", () => {
    const counts = fc.array(fc.nat({ max: 20 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(counts, fc.nat({ max: 12 }), fc.nat({ max: 11 }), (crashes, onTrial, slot) => {
        const state = desired(crashes.length, Math.min(onTrial, crashes.length));
        const at = slot % crashes.length;
        const more = crashes.with(at, (crashes[at] as number) + 1);
        const [now, then] = [stops(state, health(...crashes)), stops(state, health(...more))];
        // One more crash of a slot on trial can only speak against it, one of another slot only for it.
        const turned = at < onTrial ? now && !then : !now && then;
        expect(turned).toBe(false);
        const own = crashes.slice(0, onTrial).reduce((a, b) => a + b, 0);
        expect(now && own < 2).toBe(false);
      }),
    );
  });
});

test("the status shows how it fares", () => {
  const view: FleetView = {
    now: SINCE + 60_000,
    revision: 1,
    workers: [],
    desired: { a: desired(4, 2) },
    assignments: {},
    leases: [],
    leader: null,
    damaged: [],
  };
  expect(automationLine("a", view, health(1, 0, 1, 1)).canary).toEqual({
    share: null,
    count: 2,
    slots: 2,
    running: 0,
    refused: 0,
    crashes: 1,
    other_slots: 2,
    other_crashes: 2,
    since: SINCE,
    seconds: 60,
    generation: 3,
    by: "jo",
  });
  const plain = { ...view, desired: { a: { ...desired(4, 2), canary: null } } };
  expect(automationLine("a", plain)).toMatchObject({ canary: null, canary_stopped: null });
});

test("the status counts slots that are blocked by it among those that have refused it", () => {
  const slots = [slot(0, blocked(3)), slot(1, refuses(3)), slot(2, blocked(3)), slot(3)];
  expect(canaryLine("a", desired(4, 2), { health: {}, slots, now: SINCE })).toMatchObject({
    running: 0,
    refused: 2,
  });
});

describe("CanaryGuard", () => {
  it.each<[string, Partial<SlotStatus>]>([
    ["refuses", { state: "running", generation: 2, rejected: { generation: 3, reason: "n: too big" } }],
    ["is blocked by", { state: "blocked", generation: 0, reason: "n: too big" }],
  ])("drops a canary that a slot %s", async (_, report) => {
    const store = await openStore("sqlite::memory:");
    const { registry } = store;
    await registry.register({
      worker: {
        id: "w",
        incarnation: "w-1",
        host: "h",
        pid: 1,
        version: "1",
        startedAt: 1,
        capacity: 9,
        labels: {},
        automations: ["a"],
        draining: false,
      },
      manifests: [],
      ttlMs: 60_000,
    });
    await registry.putDesired({ name: "a", desired: desired(2, 1), expected: 0 });
    const of = { automation: "a", slotId: 0 };
    const holder = { workerId: "w", incarnation: "w-1", leaseMs: 60_000 };
    const leases = await registry.claimSlots({ ...holder, slots: [of] });
    const status: SlotStatus = {
      ...of,
      state: "running",
      since: 0,
      iterations: 0,
      restarts: 0,
      generation: 2,
      sentGeneration: 3,
      lastError: null,
      lastCause: null,
      lastProgressAt: null,
      waiting: false,
      reason: null,
      pid: 1,
      memoryMb: 1,
      cpuPercent: 0,
      loopLagMs: 0,
    };
    const beat = (slots: SlotStatus[]) => registry.beat({ ...holder, ttlMs: 60_000, leases, slots });
    const look = async () => {
      const guard = new CanaryGuard({ store, log: SILENT });
      guard.see(await registry.view());
      await guard.turn();
      return automationLine("a", await registry.view());
    };
    await beat([status]);
    expect((await look()).canary).not.toBeNull();
    await beat([{ ...status, ...report }]);
    expect(await look()).toMatchObject({
      canary: null,
      canary_stopped: {
        generation: 4,
        reason: "1 of the 1 slot on trial does not take its config; slot 0: n: too big",
      },
    });
    await store.close();
  });

  it("drops a canary that crashes, says so in history and by event, and writes over nobody", async () => {
    const store = await openStore("sqlite::memory:");
    const heard: string[] = [];
    const events = store.events.subscribe({ pattern: "fleet.config.*" }, ({ topic }) => heard.push(topic));
    await events.ready;
    const { registry } = store;
    await registry.putDesired({ name: "a", desired: desired(2, 1), expected: 0 });
    const [lease] = await registry.claimSlots({
      workerId: "w",
      incarnation: "w-1",
      leaseMs: 60_000,
      slots: [{ automation: "a", slotId: 0 }],
    });
    const crashed = health(2)["a/0"] as SlotHealth;
    await registry.setSlotHealth({ automation: "a", slotId: 0, token: lease?.token ?? "", health: crashed });

    const guard = new CanaryGuard({ store, log: SILENT });
    // Somebody has written since this view was read.
    guard.see({ now: SINCE, desired: { a: { ...desired(2, 1), generation: 2 } } });
    await guard.turn();
    expect((await registry.view()).desired["a"]).toEqual(desired(2, 1));

    const next = new CanaryGuard({ store, log: SILENT });
    next.see(await registry.view());
    await next.turn();
    const view = await registry.view();
    expect(view.desired["a"]).toMatchObject({ canary: null, generation: 4, config: { n: 1 } });
    expect(automationLine("a", view)).toMatchObject({
      canary: null,
      canary_stopped: { generation: 4, reason: expect.stringContaining("2 crashes in the 1 slot") as string },
    });
    const { at = 0 } = automationLine("a", view).canary_stopped ?? {};
    expect(Math.abs(at - view.now)).toBeLessThan(10_000);
    // The next change of the config is a new story; one of the slots is not.
    const stopped = view.desired["a"] as DesiredAutomation;
    expect(scale(stopped, 5, "jo")?.canaryStopped).toBeTruthy();
    expect(setConfig({ patch: { n: 5 } })(stopped, "jo", 0)?.canaryStopped).toBeNull();
    expect(await registry.configHistory({ name: "a", limit: 5 })).toMatchObject([
      { generation: 4, by: "fleet", note: expect.stringContaining("canary stopped: 2 crashes") as string },
    ]);
    await expect.poll(() => heard).toEqual(["fleet.config.canary-stopped"]);
    await events.close();
    await store.close();
  });
});
