import { FLEET_TOPICS } from "../contracts/life-cycle.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import { eventBus } from "../primitives/events.ts";
import type { SlotHealth } from "../protocol/health.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import type { FleetView, Store } from "../store/store.ts";
import { canaryCrashes, canaryRefusals, type SlotOnTrial } from "./canary-report.ts";
import { stopCanary } from "./config-changes.ts";
import { automationLine } from "./status-report.ts";

/** Fewer crashes of slots on trial prove nothing. */
const FEWEST_CRASHES = 2;
/** So much of what a slot says of a config it refuses goes into the reason. */
const MAX_QUOTED = 300;
/** How often health and reports of the slots is looked at while a canary runs. */
const LOOK_MS = 1000;

/** Why a canary should be stopped; null where it may go on. */
export type CanaryVerdict = string | null;

/** What is known of the slots of an automation. */
interface Seen {
  health: Readonly<Record<string, SlotHealth>>;
  slots: readonly SlotOnTrial[];
}

/**
 * A canary is stopped once its slots have crashed at least twice since it began, or one of them does not take its config; and that more
 * often, for so many slots, than the others. A crash is a heal that the slot itself bears: not one that another slot's crash or the
 * store brought about. Pure.
 */
export function canaryVerdict(
  name: string,
  desired: DesiredAutomation,
  { health, slots }: Seen,
): CanaryVerdict {
  if (!desired.canary) return null;
  return crashVerdict(name, desired, health) ?? refusalVerdict(desired, slots);
}

function crashVerdict(name: string, desired: DesiredAutomation, health: Seen["health"]): CanaryVerdict {
  const { slots, crashes, otherSlots, otherCrashes } = canaryCrashes(name, desired, health);
  if (crashes < FEWEST_CRASHES || !isMore([crashes, slots], [otherCrashes, otherSlots])) return null;
  const than = otherSlots === 0 ? "" : `, ${otherCrashes} in the ${others(otherSlots)}`;
  return `${crashes} crashes in the ${slots} slot${slots === 1 ? "" : "s"} on trial since it began${than}`;
}

function refusalVerdict(desired: DesiredAutomation, reports: Seen["slots"]): CanaryVerdict {
  const { slots, refused, otherSlots, otherRefused } = canaryRefusals(desired, reports);
  const [first] = refused;
  if (first === undefined || !isMore([refused.length, slots], [otherRefused, otherSlots])) return null;
  const than = otherRefused === 0 ? "" : `, and ${otherRefused} of the ${others(otherSlots)} theirs`;
  const who = `${refused.length} of the ${slots} slot${slots === 1 ? "" : "s"} on trial`;
  const does = refused.length === 1 ? "does not take its config" : "do not take their config";
  return `${who} ${does}${than}; slot ${first.slotId}: ${first.reason.slice(0, MAX_QUOTED)}`;
}

/** Whether the one is more, for so many slots, than the other: without a division by none. */
function isMore([count, slots]: [number, number], [otherCount, otherSlots]: [number, number]): boolean {
  return slots > 0 && (otherSlots === 0 || count * otherSlots > otherCount * slots);
}

function others(count: number): string {
  return `${count} other${count === 1 ? "" : "s"}`;
}

/** Stops canaries whose slots fare worse than the others: a part of the leader's turn. */
export class CanaryGuard {
  readonly #store: Pick<Store, "registry" | "events">;
  readonly #log: Log;
  /** Desired state of the automations with a canary, by name. */
  #running: ReadonlyMap<string, DesiredAutomation> = new Map();
  #nextLook = 0;
  /** The store's time minus this process's own. */
  #storeOffset = 0;

  constructor(parts: { store: Pick<Store, "registry" | "events">; log: Log }) {
    this.#store = parts.store;
    this.#log = parts.log;
  }

  /** The fleet as it is known now. */
  see({ desired, now }: Pick<FleetView, "desired" | "now">): void {
    this.#storeOffset = now - monotonicMs();
    this.#running = new Map(Object.entries(desired).filter(([, { canary }]) => canary));
  }

  /** Costs nothing while no canary runs. */
  async turn(): Promise<void> {
    if (this.#running.size === 0 || monotonicMs() < this.#nextLook) return;
    this.#nextLook = monotonicMs() + LOOK_MS;
    const { registry } = this.#store;
    const [health, view] = await Promise.all([registry.slotHealth(), registry.view()]);
    for (const [name, desired] of this.#running) {
      const slots = automationLine(name, view, health).slot_list;
      const reason = canaryVerdict(name, desired, { health, slots });
      if (reason !== null) await this.#stop(name, desired, reason);
    }
  }

  /** Where somebody else wrote meanwhile nothing is done: the next look decides anew. */
  async #stop(name: string, desired: DesiredAutomation, reason: string): Promise<void> {
    const changed = stopCanary(desired, "fleet", 0);
    if (changed === undefined) return;
    const at = Math.round(monotonicMs() + this.#storeOffset);
    const next = { ...changed, canaryStopped: { at, generation: changed.generation, reason } };
    const record = { by: "fleet", note: `canary stopped: ${reason}` };
    const { registry, events } = this.#store;
    const expected = desired.generation;
    if ((await registry.putDesired({ name, desired: next, expected, record })) === "conflict") return;
    const { generation } = next;
    this.#log.warn(`the canary of "${name}" was stopped`, { reason, generation });
    await eventBus({ store: events, source: "fleet", own: true })
      .publish(FLEET_TOPICS.configCanaryStopped, { automation: name, generation, reason })
      .catch((error: unknown) =>
        this.#log.debug("fleet.config.canary-stopped was not published", { error: messageOf(error) }),
      );
  }
}
