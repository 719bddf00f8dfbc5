import { monotonicMs } from "../internal/timers.ts";
import type { Program, ProgramAutomation } from "../protocol/program.ts";
import type { WorkerPartition } from "../protocol/status.ts";
import type { FleetView } from "../store/store.ts";
import { HeldLeases } from "./held-leases.ts";
import type { Membership } from "./membership.ts";
import { type PartitionState, partitionState, StoreAbsence } from "./partition.ts";
import { type SlotLimits, Slots } from "./slots.ts";
import type { WorkerTimings } from "./timings.ts";
import { planFor, type Plan } from "./wanted.ts";

/**
 * What a worker knows: its program, the fleet's view, the leases it holds, its slots. The store side writes the view and the leases,
 * the host side the slots; both read all.
 */
export class Books {
  readonly leases = new HeldLeases();
  readonly slots: Slots;
  readonly member: Membership;
  readonly timings: WorkerTimings;
  readonly partition: WorkerPartition;
  /** Written by the store side, and by the host side where this process stood still. */
  readonly absence = new StoreAbsence(monotonicMs());
  /** Recycles by limit, per automation or slot. Written by the host side. */
  readonly epochs = new Map<string, number>();
  program: Program;
  view: FleetView | undefined;
  /** Own time since which the store has answered, beat after beat; a store that is away does not make it older. */
  answersSince = monotonicMs();
  /** Store time minus own monotonic time, from the last beat. */
  storeOffset = Date.now() - monotonicMs();

  constructor(parts: {
    program: Program;
    member: Membership;
    timings: WorkerTimings;
    partition: WorkerPartition;
  }) {
    this.program = parts.program;
    this.member = parts.member;
    this.partition = parts.partition;
    this.timings = parts.timings;
    this.slots = new Slots(parts.timings, (at) => at + this.storeOffset);
  }

  /** What of the view concerns this worker, as things stand. */
  plan(): Plan {
    if (this.view === undefined || this.member.standsBy)
      return { claim: [], awaited: new Set(), wanted: [], unwanted: new Map() };
    const now = monotonicMs();
    return planFor({
      workerId: this.member.id,
      view: this.view,
      program: this.program,
      held: this.leases.all(),
      draining: this.member.draining,
      labels: this.member.labels,
      epochs: this.epochs,
      circuitOpen: (slot, code) => this.slots.circuitOpen(slot, code, now),
    });
  }

  /** What follows from how long the store has been away. */
  partitioned(now: number): PartitionState {
    return partitionState(this.partition, { ...this.absence.at(now), leaseMs: this.timings.leaseMs });
  }

  automation(name: string): ProgramAutomation | undefined {
    return this.program.automations.find(({ manifest }) => manifest.name === name);
  }

  limits(automation: string): SlotLimits {
    const manifest = this.automation(automation)?.manifest;
    const seconds = manifest?.stuckSeconds;
    const finishes = manifest?.kind === "batch";
    // A task has a timeout of its own.
    const otherwise = finishes ? Number.POSITIVE_INFINITY : this.timings.stuckMs;
    return { stuckMs: seconds === undefined ? otherwise : seconds * 1000, finishes };
  }
}
