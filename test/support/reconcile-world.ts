// What `reconcile` is tested with: its inputs, and a world in which what it decides is carried out.
import { slotKey, type SlotRef } from "../../src/protocol/spec.ts";
import {
  reconcile,
  type Action,
  type ActualHost,
  type ActualSlot,
  type ReconcileInput,
  type WantedSlot,
} from "../../src/worker/reconcile.ts";

export const GRACE_MS = 1000;
export const ANSWER_MS = 1_000_000;
export const RETRY_MS = 500;

export const wantedSlot = (change: Partial<WantedSlot> = {}): WantedSlot => ({
  automation: "a",
  slotId: 0,
  token: "1",
  version: "v1",
  config: {},
  configKey: "{}",
  generation: 1,
  slotCount: 1,
  liveConfig: false,
  isolate: "automation",
  circuitOpen: false,
  build: change.version ?? "v1",
  ...change,
});

export const actualSlot = (change: Partial<ActualSlot> = {}): ActualSlot => ({
  automation: "a",
  slotId: 0,
  state: "running",
  host: "a@v1",
  token: "1",
  version: "v1",
  configKey: "{}",
  stoppingSince: 0,
  retryAt: 0,
  blockedFor: null,
  build: change.version ?? "v1",
  stuck: false,
  finishes: false,
  stopReason: null,
  overdue: false,
  starting: false,
  offer: null,
  ...change,
});

export function decide(change: Partial<ReconcileInput>, now = 0): Action[] {
  return reconcile(
    {
      wanted: [],
      slots: [],
      hosts: [],
      unwanted: new Map(),
      hostRetryAt: new Map(),
      mayMove: new Set(),
      stopGraceMs: GRACE_MS,
      ...change,
    },
    now,
  );
}

/** For what must never happen in a world, wherever it is noticed. */
export function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`must hold: ${what}`);
}

export const slotOf = (action: Action): string | undefined =>
  "slot" in action ? slotKey(action.slot) : undefined;

/** A world in which actions are carried out, as hosts would: it is told what happens, and refuses what must not. */
export class World {
  wanted: WantedSlot[] = [];
  readonly slots = new Map<string, ActualSlot>();
  readonly hosts = new Map<string, ActualHost>();
  readonly retryAt = new Map<string, number>();
  readonly runs: string[] = [];
  readonly turns = new Set<string>();
  /** Whether the last offer to a slot was to be taken live. */
  readonly live = new Map<string, boolean>();
  /** Automations whose turn was asked for since the last grant. */
  readonly asked = new Set<string>();

  input(): ReconcileInput {
    return {
      wanted: this.wanted,
      slots: [...this.slots.values()],
      hosts: [...this.hosts.values()],
      unwanted: new Map(),
      hostRetryAt: this.retryAt,
      mayMove: this.turns,
      stopGraceMs: GRACE_MS,
    };
  }

  pass(now: number): Action[] {
    const actions = reconcile(this.input(), now);
    for (const action of actions) this.#carryOut(action, now);
    return actions;
  }

  #carryOut(action: Action, now: number): void {
    switch (action.do) {
      case "start-host":
        must(!this.hosts.has(action.host), "a host is started once");
        this.hosts.set(action.host, { key: action.host, state: "starting", doomed: null });
        return;
      case "run": {
        must(this.hosts.get(action.host)?.state === "ready", "a slot runs on a host that is ready");
        must(
          (this.slots.get(slotKey(action.slot))?.state ?? "idle") === "idle",
          "never two runs of one slot",
        );
        const { automation, slotId, token, version, build, configKey } = action.slot;
        this.slots.set(slotKey(action.slot), {
          ...actualSlot({
            automation,
            slotId,
            token,
            version,
            build,
            configKey,
            host: action.host,
            starting: true,
          }),
        });
        this.runs.push(slotKey(action.slot));
        return;
      }
      case "offer-config": {
        const { host } = action;
        const { configKey, version } = action.slot;
        const slot = this.slots.get(slotKey(action.slot));
        must(host !== slot?.host || !slot.starting, "a config is offered to code that runs");
        must(this.hosts.get(host)?.state === "ready", "a config is offered to a process that is ready");
        this.live.set(slotKey(action.slot), action.live);
        return this.#change(action.slot, {
          offer: { configKey, host, version, state: "sent", retryAt: now + ANSWER_MS },
        });
      }
      case "stop":
        must(this.slots.get(slotKey(action.slot))?.state === "running", "only what runs is stopped");
        must(
          (action.reason !== "config" && action.reason !== "reload") || this.#accepted(action.slot),
          "a config that was not accepted stops nothing, and so does code that does not accept it",
        );
        return this.#change(action.slot, { state: "stopping", stoppingSince: now });
      case "close-host":
        must(
          [...this.slots.values()].every((slot) => slot.host !== action.host || slot.state === "idle"),
          "a host is closed when nothing runs on it",
        );
        return void this.hosts.delete(action.host);
      case "ask-turn":
        must(!this.turns.has(action.automation), "a turn is asked for where there is none");
        return void this.asked.add(action.automation);
      case "end-turn":
        must(
          [...this.slots.values()].every((slot) => slot.state !== "stopping" && !slot.starting),
          "a turn is kept while a slot is down",
        );
        return void this.turns.delete(action.automation);
      case "kill-host":
        return this.lose(action.host);
    }
  }

  #change(slot: { automation: string; slotId: number }, change: Partial<ActualSlot>): void {
    const key = slotKey(slot);
    this.slots.set(key, { ...(this.slots.get(key) as ActualSlot), ...change });
  }

  ready(host: string): void {
    if (this.hosts.get(host)?.state === "starting")
      this.hosts.set(host, { key: host, state: "ready", doomed: null });
  }

  #accepted(slot: SlotRef): boolean {
    const offer = this.slots.get(slotKey(slot))?.offer;
    const wanted = this.wanted.find((one) => slotKey(one) === slotKey(slot));
    if (wanted === undefined) return false;
    return (
      offer?.state === "fits" && offer.configKey === wanted.configKey && offer.version === wanted.version
    );
  }

  /** All configs that were offered are answered. */
  answer(fits: boolean, now: number): void {
    for (const [key, slot] of this.slots) {
      const { offer } = slot;
      if (offer?.state !== "sent" || slot.state === "idle") continue;
      if (!fits) this.#change(slot, { offer: { ...offer, state: "refused", retryAt: now + RETRY_MS } });
      else if (this.live.get(key)) this.#change(slot, { offer: null, configKey: offer.configKey });
      else this.#change(slot, { offer: { ...offer, state: "fits" } });
    }
  }

  /** The turns that were asked for are given. */
  grant(): void {
    for (const automation of this.asked) this.turns.add(automation);
    this.asked.clear();
  }

  /** A host's process ends, and all its slots with it. */
  lose(host: string): void {
    this.hosts.delete(host);
    for (const slot of this.slots.values())
      if (slot.host === host && slot.state !== "idle")
        this.#change(slot, { state: "idle", host: null, starting: false });
  }

  end(key: string, retryAt = 0): void {
    const slot = this.slots.get(key);
    if (slot !== undefined && slot.state !== "idle")
      this.#change(slot, { state: "idle", host: null, starting: false, retryAt });
  }

  /** The code of all slots that were told to run has begun. */
  begin(): void {
    for (const slot of this.slots.values()) this.#change(slot, { starting: false });
  }

  running(): string[] {
    return [...this.slots.values()]
      .filter(({ state }) => state === "running")
      .map(slotKey)
      .toSorted();
  }
}
