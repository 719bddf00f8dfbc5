/**
 * What the command line and the REST API do with an automation's config. Each change is checked before anything is written, makes a new
 * generation and enters the history in the same step; the workers follow by themselves. `store` is any store, also a remote one.
 *
 * All throw `FLEET_NOT_FOUND` for an automation that is not there, `FLEET_CONFIG_INVALID` (with `issues`) for a config that does not fit,
 * `FLEET_CONFLICT` where something is in the way, and as `ConfigConflict` where `ifMatch` is not the present generation.
 */
import { setTimeout as delay } from "node:timers/promises";
import { FLEET_TOPICS } from "../contracts/life-cycle.ts";
import { FleetError } from "../errors.ts";
import { eventBus } from "../primitives/events.ts";
import {
  CONFIG_HISTORY,
  configDiff,
  type ConfigDifference,
  type ConfigVersion,
  effectiveConfig,
} from "../protocol/config.ts";
import type { Canary, DesiredAutomation } from "../protocol/spec.ts";
import type { FleetView, Store } from "../store/store.ts";
import {
  type ConfigEdit,
  promoteCanary as promote,
  rollBackTo,
  setConfig,
  setOverride,
  startCanary,
  stopCanary as stop,
} from "./config-changes.ts";
import { checkConfig, runnersOf } from "./config-check.ts";
import { configWarnings } from "./config-warnings.ts";
import { refuseUnreadable } from "./damaged.ts";
import { unknownAutomation } from "./not-found.ts";

type Door = Pick<Store, "registry" | "events">;

/** Who asks, and on top of what. */
export interface ConfigWish {
  by: string;
  note?: string | null;
  /** Only where this is the present generation of the automation's desired state. */
  ifMatch?: number;
}

export interface ConfigChanged {
  /** False where it stood so already: nothing was written. */
  changed: boolean;
  before: DesiredAutomation;
  desired: DesiredAutomation;
  /** What changed for the slots that it was meant for. */
  diff: ConfigDifference[];
  /** Versions of the automation that the config was checked against; none where no worker has published it. */
  checked: string[];
  /** What is not wrong, but may not be what was meant. */
  warnings: string[];
}

/** The generation that was asked for is not the present one: somebody has changed it meanwhile. */
export class ConfigConflict extends FleetError {
  /** The present generation. */
  readonly present: number;

  constructor(name: string, asked: number, present: number) {
    super(
      "FLEET_CONFLICT",
      `"${name}" is at generation ${present}, not ${asked}: somebody has changed it meanwhile. Read it again, then decide; nothing was changed`,
    );
    this.present = present;
  }
}

/** Changes the config of all slots, of workers with certain labels (an override), or of some slots on trial (a canary). */
export function patchConfig(
  store: Door,
  name: string,
  edit: ConfigEdit & { labels?: Readonly<Record<string, string>>; canary?: Canary["size"] },
  wish: ConfigWish,
): Promise<ConfigChanged> {
  const { labels, canary } = edit;
  if (labels !== undefined && canary !== undefined)
    throw new FleetError("FLEET_OPTION_INVALID", "config: labels and canary do not go together; choose one");
  if (labels !== undefined)
    return change(store, name, { ...wish, change: setOverride(labels, edit), seenBy: { labels } });
  if (canary !== undefined) {
    const note = wish.note ?? `canary: ${sizeOf(canary)}`;
    return change(store, name, { ...wish, note, change: startCanary(canary, edit), seenBy: { slotId: 0 } });
  }
  return change(store, name, { ...wish, change: setConfig(edit) });
}

/** A new generation with config and overrides as they were at an earlier one. A canary is dropped. */
export async function rollbackConfig(
  store: Door,
  name: string,
  generation: number,
  wish: ConfigWish,
): Promise<ConfigChanged> {
  const version = await configAt(store, name, generation);
  const note = wish.note ?? `back to generation ${version.generation}`;
  return change(store, name, { ...wish, note, change: rollBackTo(version) });
}

/** Gives the config on trial to all slots. */
export function promoteCanary(store: Door, name: string, wish: ConfigWish): Promise<ConfigChanged> {
  return change(store, name, { ...wish, note: wish.note ?? "canary promoted", change: promote });
}

/** Drops the config on trial. Never refused for what it leads back to. */
export function stopCanary(store: Door, name: string, wish: ConfigWish): Promise<ConfigChanged> {
  const note = wish.note ?? "canary stopped";
  return change(store, name, { ...wish, note, change: stop, seenBy: { slotId: 0 }, unchecked: true });
}

/** Desired state of an automation, of which its config is a part. */
export async function readConfig(
  { registry }: Pick<Door, "registry">,
  name: string,
): Promise<DesiredAutomation> {
  return desiredOf(name, await registry.view());
}

/** Changes of its config, newest first: at most `limit` (1 to 100, default 20), with `before` only those of lower generations. */
export async function configHistory(
  { registry }: Pick<Door, "registry">,
  name: string,
  { limit = 20, before }: { limit?: number; before?: number } = {},
): Promise<ConfigVersion[]> {
  desiredOf(name, await registry.view());
  const most = Math.min(CONFIG_HISTORY, Math.max(1, Math.trunc(limit)));
  return registry.configHistory({ name, limit: most, ...(before === undefined ? {} : { before }) });
}

/** The config that an automation had at a generation: as the last change up to then left it. Throws `FLEET_NOT_FOUND`. */
export async function configAt(
  { registry }: Pick<Door, "registry">,
  name: string,
  generation: number,
): Promise<ConfigVersion> {
  const { generation: present } = await readConfig({ registry }, name);
  const [found] = await registry.configHistory({ name, limit: 1, before: generation + 1 });
  if (found !== undefined && generation <= present) return found;
  const [newest, ...older] = await registry.configHistory({ name, limit: CONFIG_HISTORY });
  const oldest = older.at(-1) ?? newest;
  const kept =
    oldest === undefined
      ? "no change of it is kept"
      : `those from ${oldest.generation} to ${present} are kept`;
  throw new FleetError(
    "FLEET_NOT_FOUND",
    `"${name}" has no generation ${generation} in its history; ${kept}. Nothing was changed`,
  );
}

interface Asked extends ConfigWish {
  change: (desired: DesiredAutomation, by: string, now: number) => DesiredAutomation | undefined;
  /** For whose config the difference is shown; default those of slots that are not on trial, on workers without labels. */
  seenBy?: { labels?: Readonly<Record<string, string>>; slotId?: number };
  unchecked?: boolean;
}

async function change(store: Door, name: string, asked: Asked): Promise<ConfigChanged> {
  const { registry } = store;
  const { by, note = null, ifMatch, seenBy = {}, unchecked = false } = asked;
  for (let tries = 0; tries < 100; tries++) {
    // Where many write at once, they get in each other's way less.
    if (tries > 0) await delay(Math.random() * Math.min(200, 5 * tries));
    const view = await registry.view();
    const before = desiredOf(name, view);
    if (ifMatch !== undefined && ifMatch !== before.generation)
      throw new ConfigConflict(name, ifMatch, before.generation);
    const desired = asked.change(before, by, view.now);
    const runners = unchecked ? [] : runnersOf(name, view, await registry.manifests());
    const warnings = configWarnings(desired ?? before, seenBy, { view, runners });
    if (desired === undefined)
      return { changed: false, before, desired: before, diff: [], checked: [], warnings };
    const checked = unchecked ? [] : await checkConfig(name, desired, runners);
    const record = { by, note };
    const outcome = await registry.putDesired({ name, desired, expected: before.generation, record });
    if (outcome === "conflict") continue;
    await announce(store, { automation: name, generation: desired.generation, ...record });
    const seen = { labels: {}, ...seenBy };
    const diff = configDiff(effectiveConfig(before, seen), effectiveConfig(desired, seen));
    return { changed: true, before, desired, diff, checked, warnings };
  }
  throw new FleetError(
    "FLEET_STORE_BUSY",
    `the desired state of "${name}" kept changing while it was written; nothing was changed`,
    { retryable: true },
  );
}

/** For people and dashboards; the change stands whether or not they hear of it. */
export async function announce(
  { events }: Pick<Door, "events">,
  about: { automation: string; generation: number; by: string; note: string | null },
): Promise<void> {
  const bus = eventBus({ store: events, source: about.by, own: true });
  await bus.publish(FLEET_TOPICS.configPatched, about).catch(() => undefined);
}

function desiredOf(name: string, view: FleetView): DesiredAutomation {
  refuseUnreadable(name, view);
  const { desired } = view;
  const found = Object.hasOwn(desired, name) ? desired[name] : undefined;
  if (found !== undefined) return found;
  throw unknownAutomation(name, Object.keys(desired).toSorted());
}

export function sizeOf(size: Canary["size"]): string {
  if ("slots" in size) return size.slots === 1 ? "1 slot" : `${size.slots} slots`;
  return `${Number((size.share * 100).toFixed(2))} % of the slots`;
}
