import { messageOf } from "../errors.ts";
import { Throttle, type Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { Program } from "../protocol/program.ts";
import type { DrainStatus, SlotStatus, WorkerInfo } from "../protocol/status.ts";
import type { HeldLease, Store } from "../store/store.ts";

/** What a worker says in its record of the automations that it can run. */
export function knownOf({
  automations,
}: Pick<Program, "automations">): Pick<WorkerInfo, "automations" | "known"> {
  const manifests = automations.map(({ manifest }) => manifest);
  return {
    automations: manifests.map(({ name }) => name),
    known: Object.fromEntries(manifests.map(({ name, version, labels = {} }) => [name, { version, labels }])),
  };
}

export interface Kept {
  /** Own time before the call: what it renewed holds at least a lease longer. */
  since: number;
  now: number;
  revision: number;
  lost: HeldLease[];
}

/**
 * This worker's place in the fleet: its record, kept by beats. An incarnation that was replaced (it was frozen for long, and its id has
 * been taken since) is refused by the store; it then stands by, with nothing to run, until the id is free again.
 */
export class Membership {
  readonly #store: Store;
  readonly #log: Log;
  readonly #ttlMs: number;
  readonly #quietly = new Throttle(10_000);
  #info: WorkerInfo;
  #program: Program;
  #reported = "";
  /** How often the record was changed here, and which of these changes the store has. */
  #changes = 0;
  #told = 0;
  #generation = 0;
  #standsBy = false;

  constructor(parts: { store: Store; worker: WorkerInfo; program: Program; ttlMs: number; log: Log }) {
    this.#store = parts.store;
    this.#info = parts.worker;
    this.#program = parts.program;
    this.#ttlMs = parts.ttlMs;
    this.#log = parts.log;
  }

  get id(): string {
    return this.#info.id;
  }

  get incarnation(): string {
    return this.#info.incarnation;
  }

  get labels(): Readonly<Record<string, string>> {
    return this.#info.labels;
  }

  get draining(): boolean {
    return this.#info.draining;
  }

  /** Another incarnation bears the id: this one runs nothing, claims nothing, and waits for the other to end. */
  get standsBy(): boolean {
    return this.#standsBy;
  }

  /** The record was changed, and the store is not known to have it so: `announce` is to be called, again where it failed. */
  get untold(): boolean {
    return this.#told < this.#changes;
  }

  /** The generation that a view of the fleet shows of this incarnation. */
  set generation(generation: number) {
    this.#generation = generation;
  }

  /** From now on it counts as draining here; `announce` tells the fleet. */
  drain(drain: DrainStatus): void {
    this.#change({ draining: true, drain });
  }

  setProgram(program: Program): void {
    this.#program = program;
    this.#change(knownOf(program));
  }

  /** Notes whether it can receive; answers whether that changed. */
  setDeaf(why: string | null): boolean {
    if ((this.#info.deaf ?? null) === why) return false;
    this.#change({ deaf: why });
    return true;
  }

  #change(changes: Partial<WorkerInfo>): void {
    this.#info = { ...this.#info, ...changes };
    this.#changes += 1;
  }

  /** Writes the record anew. False when another live incarnation bears the id. */
  async announce(): Promise<boolean> {
    const changes = this.#changes;
    const manifests = this.#program.automations.map(({ manifest }) => manifest);
    const result = await this.#store.registry.register({
      worker: this.#info,
      manifests,
      ttlMs: this.#ttlMs,
      // A replaced incarnation that comes back is a new generation; one that the store has lost keeps its own.
      ...(this.#standsBy ? {} : { generation: this.#generation }),
    });
    if (result.outcome === "registered") {
      if (this.#standsBy) this.#log.info("the id is free again; this worker takes part again");
      this.#standsBy = false;
      this.#generation = result.generation;
      this.#told = Math.max(this.#told, changes);
      return true;
    }
    this.#standsBy = true;
    const { host, pid } = result.by;
    this.#quietly.pass(monotonicMs(), () =>
      this.#log.error(
        `another worker bears the id "${this.id}" by now; this one runs nothing until that has ended`,
        { host, pid },
      ),
    );
    return false;
  }

  /** Undefined when the store does not know this incarnation (any more). */
  async beat(
    leases: readonly HeldLease[],
    leaseMs: number,
    slots: readonly SlotStatus[],
  ): Promise<Kept | undefined> {
    const since = monotonicMs();
    const text = JSON.stringify(slots);
    const result = await this.#store.registry.beat({
      workerId: this.id,
      incarnation: this.incarnation,
      ttlMs: this.#ttlMs,
      leaseMs,
      leases,
      ...(text === this.#reported ? {} : { slots }),
    });
    if (result.outcome === "unknown") {
      this.#reported = "";
      return undefined;
    }
    this.#reported = text;
    return { since, now: result.now, revision: result.revision, lost: result.lost };
  }

  async leave(): Promise<void> {
    try {
      await this.#store.registry.deregister({ workerId: this.id, incarnation: this.incarnation });
    } catch (error) {
      this.#log.warn("could not sign off from the store; this worker will count as lost", {
        error: messageOf(error),
      });
    }
  }
}
