import { describe, expect, it } from "vitest";
import { FleetError } from "../errors.ts";
import { Gather, type GatherOptions } from "./gather.ts";

/** A gather whose batches settle when the test says so. */
function setup(change: Partial<GatherOptions<string>> = {}) {
  const batches: { items: readonly string[]; settle: (error?: Error) => void }[] = [];
  let underWay = 0;
  let mostUnderWay = 0;
  const gather = new Gather<string>({
    send: (items) => {
      mostUnderWay = Math.max(mostUnderWay, ++underWay);
      return new Promise((resolve, reject) => {
        batches.push({
          items,
          settle: (error) => {
            underWay -= 1;
            if (error === undefined) resolve();
            else reject(error);
          },
        });
      });
    },
    sizeOf: (item) => item.length,
    maxItems: 100,
    maxBytes: 1000,
    maxWaitingBytes: 10_000,
    ...change,
  });
  return { gather, batches, most: () => mostUnderWay };
}

const tick = () => new Promise((resolve) => setImmediate(resolve));

describe("Gather", () => {
  it("sends a lone call at once, and the calls of one tick together, in order", async () => {
    const { gather, batches } = setup();
    const all = [gather.add("a"), gather.add("b"), gather.add("c")];
    await Promise.resolve();
    expect(batches.map(({ items }) => items)).toEqual([["a", "b", "c"]]);
    batches[0]?.settle();
    await Promise.all(all);
  });

  it("gathers what comes while a batch is under way; one is under way at a time", async () => {
    const { gather, batches, most } = setup();
    const order: string[] = [];
    const add = (item: string) => gather.add(item).then(() => order.push(item));
    const all = [add("a")];
    for (const item of "bcdefgh") {
      await tick();
      all.push(add(item));
    }
    expect(batches).toHaveLength(1);
    batches[0]?.settle();
    await tick();
    expect(batches[1]?.items).toEqual(Array.from("bcdefgh"));
    batches[1]?.settle();
    await Promise.all(all);
    expect(order).toEqual(Array.from("abcdefgh"));
    expect(most()).toBe(1);
  });

  it("lets those just answered travel together again", async () => {
    const { gather, batches } = setup();
    const loop = async () => {
      for (let turn = 0; turn < 3; turn++) await gather.add("x");
    };
    const loops = [loop(), loop(), loop()];
    for (let batch = 0; batch < 3; batch++) {
      await tick();
      expect(batches[batch]?.items).toHaveLength(3);
      batches[batch]?.settle();
    }
    await Promise.all(loops);
    expect(batches).toHaveLength(3);
  });

  it("keeps batches within items and bytes; what is larger travels alone", async () => {
    const { gather, batches } = setup({ maxItems: 2, maxBytes: 5 });
    const all = ["aa", "bb", "cc", "dddd", "eeeeeeeee", "f"].map((item) => gather.add(item));
    for (let at = 0; at < 5; at++) {
      await tick();
      batches[at]?.settle();
    }
    await Promise.all(all);
    expect(batches.map(({ items }) => items)).toEqual([["aa", "bb"], ["cc"], ["dddd"], ["eeeeeeeee"], ["f"]]);
  });

  it("fails only the calls of the batch that failed", async () => {
    const { gather, batches } = setup({ maxItems: 1 });
    const results = Promise.allSettled([gather.add("a"), gather.add("b"), gather.add("c")]);
    await tick();
    batches[0]?.settle();
    await tick();
    batches[1]?.settle(new Error("no"));
    await tick();
    batches[2]?.settle();
    expect((await results).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    await gather.flushed();
  });

  it("refuses more than may wait, with the number, and takes calls again once it has drained", async () => {
    const { gather, batches } = setup({ maxWaitingBytes: 10 });
    const first = gather.add("aaaaa");
    await tick();
    const second = gather.add("bbbbbb");
    await expect(gather.add("ccccc")).rejects.toMatchObject({
      code: "FLEET_STORE_BUSY",
      retryable: true,
      message: expect.stringContaining("6 bytes are waiting") as string,
    });
    batches[0]?.settle();
    await tick();
    const third = gather.add("ccccc");
    batches[1]?.settle();
    await tick();
    batches[2]?.settle();
    await Promise.all([first, second, third]);
  });

  it("is flushed once all that was accepted has settled", async () => {
    const { gather, batches } = setup();
    await gather.flushed();
    const added = gather.add("a");
    let flushed = false;
    const waiting = gather.flushed().then(() => (flushed = true));
    await tick();
    expect(flushed).toBe(false);
    batches[0]?.settle(new Error("no"));
    await expect(added).rejects.toThrow("no");
    await waiting;
    expect(flushed).toBe(true);
  });

  it("lets those behind a call that ran into its deadline fail with it, and those that came later go on", async () => {
    const { gather, batches } = setup({ maxItems: 1 });
    const failed: string[] = [];
    const add = (item: string) =>
      gather.add(item).catch((error: Error) => failed.push(`${item}: ${error.message}`));
    const early = [add("a"), add("b"), add("c")];
    await tick();
    const later = add("d");
    await new Promise((resolve) => setTimeout(resolve, 300));
    batches[0]?.settle(new FleetError("FLEET_STORE_UNAVAILABLE", "away", { outcome: "unknown" }));
    await Promise.all(early);
    const why = "not sent, because the store did not serve the call before it: away";
    expect(failed).toEqual(["a: away", `b: ${why}`, `c: ${why}`]);
    await tick();
    expect(batches.map(({ items }) => items)).toEqual([["a"], ["d"]]);
    batches[1]?.settle();
    await later;
    expect(failed).toHaveLength(3);
    await gather.flushed();
  });

  it("tries each batch where the one before was refused at once", async () => {
    const { gather, batches } = setup({ maxItems: 1 });
    const first = gather.add("a");
    const second = gather.add("b");
    await tick();
    batches[0]?.settle(new FleetError("FLEET_STORE_UNAVAILABLE", "not now"));
    await expect(first).rejects.toThrow("not now");
    batches[1]?.settle();
    await second;
  });
});
