import { FLEET_TOPICS } from "../contracts/life-cycle.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import { eventBus } from "../primitives/events.ts";
import type { SlotHealth } from "../protocol/health.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import type { FleetView, Store } from "../store/store.ts";
import { canaryCrashes } from "./canary-report.ts";
import { stopCanary } from "./config-changes.ts";

/** Fewer crashes of slots on trial prove nothing. */
const FEWEST_CRASHES = 2;
/** How often the health of the slots is looked at while a canary runs. */
const LOOK_MS = 1000;

/** Why a canary should be stopped; null where it may go on. */
export type CanaryVerdict = string | null;

/**
 * A canary is stopped once its slots have crashed at least twice since it began, and more often, for so many slots, than the others. A
 * crash is a heal that the slot itself bears: not one that another slot's crash or the store brought about. Pure.
 */
export function canaryVerdict(
  name: string,
  desired: DesiredAutomation,
  health: Readonly<Record<string, SlotHealth>>,
): CanaryVerdict {
  if (!desired.canary) return null;
  const { slots, crashes, otherSlots, otherCrashes } = canaryCrashes(name, desired, health);
  // crashes / slots > otherCrashes / otherSlots, without a division by none.
  const more = otherSlots === 0 || crashes * otherSlots > otherCrashes * slots;
  if (slots === 0 || crashes < FEWEST_CRASHES || !more) return null;
  const than =
    otherSlots === 0 ? "" : `, ${otherCrashes} in the ${otherSlots} other${otherSlots === 1 ? "" : "s"}`;
  return `${crashes} crashes in the ${slots} slot${slots === 1 ? "" : "s"} on trial since it began${than}`;
}

/** Stops canaries whose slots crash more than the others: a part of the leader's turn. */
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
    const health = await this.#store.registry.slotHealth();
    for (const [name, desired] of this.#running) {
      const reason = canaryVerdict(name, desired, health);
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
