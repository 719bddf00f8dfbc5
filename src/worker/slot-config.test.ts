import { describe, expect, it } from "vitest";
import type { WantedSlot } from "./reconcile.ts";
import {
  agreed,
  answered,
  hostEnded,
  NO_CONFIG,
  offered,
  shown,
  type SlotConfig,
  started,
  startWith,
} from "./slot-config.ts";

const wanted = (generation: number, over: Partial<WantedSlot> = {}): WantedSlot => ({
  automation: "a",
  slotId: 0,
  token: "1",
  version: "v1",
  build: "v1#0.0",
  config: { n: generation },
  configKey: `n${generation}`,
  generation,
  slotCount: 1,
  liveConfig: true,
  isolate: "automation",
  circuitOpen: false,
  ...over,
});
const about = (generation: number) => ({ slotId: 0, configKey: `n${generation}`, generation });
const HOST = "a@v1#0.0";
const at = (now: number, host = HOST) => ({ host, now });
const offer = (known: SlotConfig, slot: WantedSlot, now: number) => offered(known, slot, HOST, now);
const applies = (known: SlotConfig, generation: number) =>
  answered(known, { type: "config-applied", ...about(generation) }, at(0));
const refuses = (known: SlotConfig, generation: number, now: number, host = HOST) =>
  answered(known, { type: "config-rejected", ...about(generation), reason: "no" }, at(now, host));
const RUNNING = started(NO_CONFIG, wanted(1));

describe("a slot's config", () => {
  it("is sent, then applied: three generations in three fields", () => {
    expect(shown(RUNNING)).toEqual({ generation: 1, sentGeneration: 1, rejected: null });
    const sent = offer(RUNNING, wanted(2), 0);
    expect(shown(sent)).toEqual({ generation: 1, sentGeneration: 2, rejected: null });
    expect(sent.offer).toMatchObject({ configKey: "n2", state: "sent" });
    expect(shown(applies(sent, 2))).toEqual({ generation: 2, sentGeneration: 2, rejected: null });
    expect(applies(sent, 2)).toMatchObject({
      applied: wanted(2).config && { config: { n: 2 } },
      offer: null,
    });
  });

  it("stays as it is where the new one is refused; that is offered again after growing pauses", () => {
    let known = RUNNING;
    let now = 0;
    const pauses: number[] = [];
    for (let times = 0; times < 9; times++) {
      known = refuses(offer(known, wanted(2), now), 2, now);
      expect(known.offer?.state).toBe("refused");
      pauses.push((known.offer?.retryAt ?? 0) - now);
      now = known.offer?.retryAt ?? 0;
    }
    expect(shown(known)).toEqual({
      generation: 1,
      sentGeneration: 2,
      rejected: { generation: 2, reason: "no" },
    });
    expect(known.rejected?.times).toBe(9);
    // Within two beats the first time.
    expect(pauses[0]).toBeLessThan(2000);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(72_000);
    expect(pauses[5]).toBeGreaterThan(pauses[0] as number);
    expect(shown(applies(offer(known, wanted(2), now), 2)).rejected).toBeNull();
  });

  it("does not mistake a late answer for one to the present offer", () => {
    const newer = offer(offer(RUNNING, wanted(2), 0), wanted(3), 1);
    const { unanswered: _, ...same } = newer;
    expect(refuses(newer, 2, 2)).toMatchObject(same);
    expect(answered(newer, { type: "config-fits", ...about(2) }, at(2))).toMatchObject(same);
    // It has it now, all the same, and the present offer stands.
    expect(applies(newer, 2)).toMatchObject({ applied: { configKey: "n2" }, offer: { configKey: "n3" } });
  });

  it("is what the code has taken, whatever was offered meanwhile", () => {
    const taken = applies(offer(offer(RUNNING, wanted(2), 0), wanted(3), 1), 2);
    expect(taken.applied).toEqual({ config: { n: 2 }, configKey: "n2", generation: 2 });
    // The next is refused: a crash starts it with what it had, and that bears its own key.
    const refused = refuses(taken, 3, 2);
    expect(startWith(wanted(3), refused)).toMatchObject({ configKey: "n2", config: { n: 2 } });
    // Also where the very same was offered twice, with another in between.
    const twice = [2, 3, 2].reduce((known, generation) => offer(known, wanted(generation), 0), RUNNING);
    const last = [2, 3, 2].reduce((known, generation) => {
      const next = applies(known, generation);
      expect(next.applied).toMatchObject({ configKey: `n${generation}`, config: { n: generation } });
      return next;
    }, twice);
    expect(last.unanswered).toEqual([]);
  });

  it("is not known where it cannot be told what was taken: then it is offered anew", () => {
    // Of a run that is over.
    const restarted = started(offer(RUNNING, wanted(2), 0), wanted(3));
    expect(applies(restarted, 2).applied).toBeNull();
    // Of another process.
    const moved = offered(RUNNING, wanted(2), "a@v2", 0);
    expect(applies(moved, 2).applied).toBeNull();
    // What is not answered for long does not pile up.
    let known = RUNNING;
    for (let generation = 2; generation < 500; generation++) known = offer(known, wanted(generation), 0);
    expect(known.unanswered.length).toBeLessThan(100);
    expect(applies(known, 2).applied).toBeNull();
    expect(applies(known, 499).applied).toMatchObject({ configKey: "n499", config: { n: 499 } });
    expect(hostEnded(known, HOST).unanswered).toEqual([]);
  });

  it("counts for a later generation that asks for nothing else", () => {
    const refused = refuses(offer(RUNNING, wanted(2), 0), 2, 0);
    const back = agreed(refused, wanted(3, { configKey: "n1", config: { n: 1 } }));
    expect(shown(back)).toEqual({ generation: 3, sentGeneration: 3, rejected: null });
    expect(back.offer).toBeNull();
    expect(agreed(back, wanted(3, { configKey: "n1" }))).toBe(back);
  });

  it("is what a restart begins with where this very code has refused the new one", () => {
    const refused = refuses(offer(RUNNING, wanted(2), 0), 2, 0);
    expect(startWith(wanted(2), refused)).toMatchObject({ configKey: "n1", config: { n: 1 }, generation: 1 });
    expect(startWith(wanted(2, { version: "v2" }), refused)).toEqual(wanted(2, { version: "v2" }));
    expect(startWith(wanted(3), refused)).toEqual(wanted(3));
    // The refusal is not forgotten by that.
    expect(shown(started(refused, startWith(wanted(2), refused)))).toMatchObject({
      generation: 1,
      rejected: { generation: 2 },
    });
    expect(startWith(wanted(2), NO_CONFIG)).toEqual(wanted(2));
  });

  it("is asked of other code before a slot moves to it; only that process answers for it", () => {
    const next = wanted(1, { version: "v2" });
    const asked = offered(RUNNING, next, "a@v2", 0);
    expect(refuses(asked, 1, 0)).toEqual(asked);
    const refused = refuses(asked, 1, 0, "a@v2");
    expect(refused).toMatchObject({ offer: { host: "a@v2", state: "refused" }, rejected: { version: "v2" } });
    // Its own code has that very config, and would start with it again.
    expect(startWith(wanted(1), refused)).toEqual(wanted(1));
    expect(hostEnded(refused, "a@v2").offer).toBeNull();
    expect(hostEnded(refused, HOST)).toBe(refused);
  });
});
