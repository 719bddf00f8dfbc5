import type { Manifest } from "../../protocol/manifest.ts";
import type { DesiredAutomation } from "../../protocol/spec.ts";
import type { SlotStatus, WorkerInfo } from "../../protocol/status.ts";
import type { HeldLease, RegisterResult, Registry } from "../store.ts";

/** Worker `id` in its incarnation `<id>-<incarnation>`. */
export function worker(id: string, incarnation = 1, changes: Partial<WorkerInfo> = {}): WorkerInfo {
  return {
    id,
    incarnation: `${id}-${incarnation}`,
    host: "host-ü",
    pid: 4242,
    version: "0.1.0",
    startedAt: 1_781_234_567_890,
    capacity: 8,
    labels: {},
    automations: [],
    draining: false,
    ...changes,
  };
}

export function manifest(name: string): Manifest {
  return {
    name,
    kind: "continuous",
    version: "abc",
    configSchema: { type: "object", properties: {}, required: [], maximum: 1_781_234_567_890_123 },
    output: { stream: name, schema: {}, maxLength: 10, ttlSeconds: 0.5, maxPayloadBytes: 100 },
    tasks: null,
    stateSchema: null,
    uses: { pop: [], publish: [{ kind: "topic", name: "t", schema: null }] },
    liveConfig: false,
  };
}

export function desired(generation: number, changes: Partial<DesiredAutomation> = {}): DesiredAutomation {
  return {
    slots: 2,
    config: { urls: [], headers: {}, at: 1_781_234_567_890_123, nothing: null },
    paused: false,
    generation,
    deployed: {},
    changedBy: { slots: "deploy", config: "deploy" },
    ...changes,
  };
}

export function status(automation: string, slotId: number, changes: Partial<SlotStatus> = {}): SlotStatus {
  return {
    automation,
    slotId,
    state: "running",
    since: 1_781_234_567_890,
    iterations: 3,
    restarts: 0,
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
    ...changes,
  };
}

export const TTL = 10_000;
export const LEASE = 3000;

export function register(registry: Registry, info: WorkerInfo, ttlMs = TTL): Promise<RegisterResult> {
  return registry.register({ worker: info, manifests: [], ttlMs });
}

export function beat(registry: Registry, info: WorkerInfo, leases: readonly HeldLease[] = []) {
  const { id: workerId, incarnation } = info;
  return registry.beat({ workerId, incarnation, ttlMs: TTL, leaseMs: LEASE, leases });
}

export function claim(registry: Registry, info: WorkerInfo, automation: string, slotIds: readonly number[]) {
  return registry.claimSlots({
    workerId: info.id,
    incarnation: info.incarnation,
    leaseMs: LEASE,
    slots: slotIds.map((slotId) => ({ automation, slotId })),
  });
}

export const slotIds = (leases: readonly HeldLease[]) =>
  leases.map(({ slotId }) => slotId).toSorted((a, b) => a - b);
