import { describe, expect, it } from "vitest";
import { isFleetError } from "../errors.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import { openStore } from "../store/open.ts";
import { changeDesired, pause, recycle, resume, scale } from "./desire.ts";

const BASE: DesiredAutomation = {
  slots: 3,
  config: { a: 1 },
  paused: false,
  generation: 7,
  deployed: { slots: "3" },
  changedBy: { slots: "deploy", config: "deploy" },
};
const BY = "command line (jo@laptop)";
/** Of each slot: equal numbers share a process. */
const counts = ({ slots, recycles = 0, slotRecycles = {} }: DesiredAutomation) =>
  Array.from({ length: slots }, (_, id) => recycles + (slotRecycles[id] ?? 0));

describe("scale", () => {
  it("is a new generation of the number alone, with who asked for it", () => {
    expect(scale(BASE, 5, BY)).toEqual({
      ...BASE,
      slots: 5,
      generation: 8,
      changedBy: { slots: BY, config: "deploy" },
    });
    expect(scale(BASE, 0, BY)?.slots).toBe(0);
    expect(scale(BASE, 10_000, BY)?.slots).toBe(10_000);
  });

  it("changes nothing where the number is there already", () => {
    expect(scale(BASE, 3, BY)).toBeUndefined();
  });

  it.each([-1, 1.5, 10_001, Number.NaN])("refuses %d", (count) => {
    expect(() => scale(BASE, count, BY)).toThrow("scale: slots must be");
  });
});

describe("pause and resume", () => {
  it("are a new generation that keeps everything else", () => {
    const paused = pause(BASE) as DesiredAutomation;
    expect(paused).toEqual({ ...BASE, paused: true, generation: 8 });
    expect(resume(paused)).toEqual({ ...BASE, paused: false, generation: 9 });
  });

  it("change nothing the second time", () => {
    expect(pause({ ...BASE, paused: true })).toBeUndefined();
    expect(resume(BASE)).toBeUndefined();
  });
});

describe("recycle", () => {
  it("gives all slots one fresh process, each time another", () => {
    const once = recycle(BASE) as DesiredAutomation;
    expect(once).toEqual({ ...BASE, recycles: 1, slotRecycles: {}, generation: 8 });
    expect(counts(recycle(once) as DesiredAutomation)).toEqual([2, 2, 2]);
  });

  it("gives one slot a process that no other slot has or had", () => {
    const one = recycle(BASE, 1) as DesiredAutomation;
    expect(counts(one)).toEqual([0, 1, 0]);
    const two = recycle(one, 2) as DesiredAutomation;
    expect(counts(two)).toEqual([0, 1, 2]);
    expect(counts(recycle(two, 1) as DesiredAutomation)).toEqual([0, 3, 2]);
  });

  it("of all brings single slots back to the others, in a process that is fresh for each", () => {
    const apart = recycle(recycle(BASE, 1) as DesiredAutomation, 2) as DesiredAutomation;
    expect(counts(apart)).toEqual([0, 1, 2]);
    expect(counts(recycle(apart) as DesiredAutomation)).toEqual([3, 3, 3]);
  });

  it("has nothing to do without slots, and refuses slots that are not there", () => {
    expect(recycle({ ...BASE, slots: 0 })).toBeUndefined();
    expect(() => recycle(BASE, 3)).toThrow("there is no slot 3; slots are 0 to 2");
    expect(() => recycle(BASE, -1)).toThrow("there is no slot -1");
    expect(() => recycle({ ...BASE, slots: 1 }, 1)).toThrow("there is slot 0 only");
    expect(() => recycle({ ...BASE, slots: 0 }, 0)).toThrow("there are no slots");
  });
});

describe("changeDesired", () => {
  it("writes over what others write meanwhile, and loses nobody's change", async () => {
    const store = await openStore("sqlite::memory:");
    const { registry } = store;
    const first = { ...BASE, generation: 1 };
    expect(await registry.putDesired({ name: "a", desired: first, expected: 0 })).toBe("stored");
    const results = await Promise.all(
      Array.from({ length: 5 }, () => changeDesired(registry, "a", (desired) => recycle(desired))),
    );
    expect(results.map(({ outcome }) => outcome)).toEqual(Array(5).fill("changed"));
    expect((await registry.view()).desired["a"]).toMatchObject({ recycles: 5, generation: 6 });
    expect(await changeDesired(registry, "a", (desired) => resume(desired))).toMatchObject({
      outcome: "unchanged",
      desired: { generation: 6 },
    });
    expect(await changeDesired(registry, "b", (desired) => pause(desired))).toEqual({
      outcome: "unknown",
      names: ["a"],
    });
    expect(await changeDesired(registry, "constructor", (desired) => pause(desired))).toMatchObject({
      outcome: "unknown",
    });
    await store.close();
  });

  it("gives up, with nothing changed, where the conflicts do not end", async () => {
    const store = await openStore("sqlite::memory:");
    await store.registry.putDesired({ name: "a", desired: { ...BASE, generation: 1 }, expected: 0 });
    let tried = 0;
    const contended = {
      view: () => store.registry.view(),
      putDesired: () => {
        tried += 1;
        return Promise.resolve("conflict" as const);
      },
    };
    const failed = await changeDesired(contended, "a", (desired) => pause(desired)).catch(
      (error: unknown) => error,
    );
    expect(isFleetError(failed, "FLEET_STORE_BUSY")).toBe(true);
    expect(tried).toBe(20);
    expect((await store.registry.view()).desired["a"]?.paused).toBe(false);
    await store.close();
  });
});
