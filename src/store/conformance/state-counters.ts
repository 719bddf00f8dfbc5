import { expect } from "vitest";
import { openThree, range, siteCase, type StoreHarness } from "./harness.ts";
import { Ops } from "./state-driver.ts";

const MOST = Number.MAX_SAFE_INTEGER;
const ref = { name: "c", key: "" };

export function counterCases(harness: StoreHarness): void {
  siteCase(
    harness,
    "a counter is 0 until it is written, and then what it was brought to",
    async ({ open }) => {
      const { counters } = (await open()).state;
      const ops = new Ops("p");
      expect(await counters.get(ref)).toBe(0);
      expect(await counters.list()).toEqual([]);
      expect(await counters.add({ ...ref, by: 5, op: ops.next })).toEqual({ outcome: "done", value: 5 });
      expect(await counters.add({ ...ref, by: -7, op: ops.next })).toEqual({ outcome: "done", value: -2 });
      expect(await counters.add({ ...ref, by: 0, op: ops.next })).toEqual({ outcome: "done", value: -2 });
      expect(await counters.set({ ...ref, value: 12, op: ops.next })).toEqual({ value: 12, before: -2 });
      expect(await counters.get(ref)).toBe(12);
    },
  );

  siteCase(harness, "compare and set: only from what was expected", async ({ open }) => {
    const { counters } = (await open()).state;
    const ops = new Ops("p");
    const change = (expected: number, value: number) =>
      counters.compareAndSet({ ...ref, expected, value, op: ops.next });
    expect(await change(1, 5)).toEqual({ outcome: "different", value: 0 });
    expect(await counters.list()).toEqual([]);
    expect(await change(0, 5)).toEqual({ outcome: "set", value: 5 });
    expect(await change(0, 6)).toEqual({ outcome: "different", value: 5 });
    expect(await change(5, -MOST)).toEqual({ outcome: "set", value: -MOST });
    expect(await change(-MOST + 1, 0)).toEqual({ outcome: "different", value: -MOST });
    expect(await counters.get(ref)).toBe(-MOST);
  });

  siteCase(harness, "beyond exact numbers nothing is changed", async ({ open }) => {
    const { counters } = (await open()).state;
    const ops = new Ops("p");
    await counters.set({ ...ref, value: MOST - 1, op: ops.next });
    expect(await counters.add({ ...ref, by: 1, op: ops.next })).toEqual({ outcome: "done", value: MOST });
    for (const by of [1, 2, 3, MOST])
      expect(await counters.add({ ...ref, by, op: ops.next })).toEqual({ outcome: "overflow", value: MOST });
    // A repeat of what was refused is refused, also where there would be room by now.
    const refused = ops.last;
    await counters.set({ ...ref, value: 0, op: new Ops("q").next });
    expect(await counters.add({ ...ref, by: MOST, op: refused })).toEqual({
      outcome: "overflow",
      value: MOST,
    });
    await counters.set({ ...ref, value: -MOST, op: ops.next });
    for (const by of [-1, -2, -MOST])
      expect(await counters.add({ ...ref, by, op: ops.next })).toEqual({ outcome: "overflow", value: -MOST });
    expect(await counters.add({ ...ref, by: MOST, op: ops.next })).toEqual({ outcome: "done", value: 0 });
    expect(await counters.get(ref)).toBe(0);
  });

  siteCase(harness, "a repeat is answered as the first time, and applied once", async ({ open }) => {
    const [store, other] = await Promise.all([open(), open()]);
    const { counters } = store.state;
    const ops = new Ops("p");
    await counters.add({ ...ref, by: 5, op: ops.next });
    await other.state.counters.add({ ...ref, by: 100, op: new Ops("q").next });
    expect(await other.state.counters.add({ ...ref, by: 5, op: ops.last })).toEqual({
      outcome: "done",
      value: 5,
    });
    await counters.set({ ...ref, value: 7, op: ops.next });
    await counters.add({ ...ref, by: 1, op: new Ops("r").next });
    expect(await counters.set({ ...ref, value: 7, op: ops.last })).toEqual({ value: 7, before: 105 });
    const change = { ...ref, expected: 8, value: 9 };
    expect(await counters.compareAndSet({ ...change, op: ops.next })).toEqual({ outcome: "set", value: 9 });
    expect(await counters.compareAndSet({ ...change, op: ops.last })).toEqual({ outcome: "set", value: 9 });
    expect(await counters.compareAndSet({ ...change, op: ops.next })).toEqual({
      outcome: "different",
      value: 9,
    });
    await counters.set({ ...ref, value: 8, op: new Ops("s").next });
    expect(await counters.compareAndSet({ ...change, op: ops.last })).toEqual({
      outcome: "different",
      value: 9,
    });
    expect(await counters.get(ref)).toBe(8);
  });

  siteCase(
    harness,
    "an operation that comes late, behind a newer one of its producer, changes nothing",
    async ({ open }) => {
      const { counters } = (await open()).state;
      const ops = new Ops("p");
      const [late, newer] = [ops.next, ops.next];
      await counters.add({ ...ref, by: 1, op: newer });
      await counters.add({ ...ref, by: 1000, op: late });
      expect(await counters.get(ref)).toBe(1);
      // Of another key of the name: operations are numbered per name.
      await counters.add({ name: "c", key: "k", by: 1000, op: late });
      expect(await counters.get({ name: "c", key: "k" })).toBe(0);
      // Of another name they are others.
      expect(await counters.add({ name: "c2", key: "", by: 3, op: late })).toEqual({
        outcome: "done",
        value: 3,
      });
    },
  );

  siteCase(harness, "many who add at once lose nothing, and each sees a value of its own", async (site) => {
    const stores = await openThree(site);
    const seen = await Promise.all(
      range(0, 12).map(async (i) => {
        const { counters } = (stores[i % 3] as (typeof stores)[0]).state;
        const ops = new Ops(`p${i}`);
        const values: number[] = [];
        for (const _ of range(0, 40))
          values.push((await counters.add({ ...ref, by: 1, op: ops.next })).value);
        return values;
      }),
    );
    expect(seen.flat().toSorted((a, b) => a - b)).toEqual(range(1, 481));
    expect(await stores[1].state.counters.get(ref)).toBe(480);
  });

  siteCase(harness, "compare and set under contention counts exactly", async (site) => {
    const stores = await openThree(site);
    await Promise.all(
      stores.map(async ({ state: { counters } }, i) => {
        const ops = new Ops(`p${i}`);
        for (let done = 0; done < 20;) {
          const expected = await counters.get(ref);
          const { outcome } = await counters.compareAndSet({
            ...ref,
            expected,
            value: expected + 1,
            op: ops.next,
          });
          if (outcome === "set") done += 1;
        }
      }),
    );
    expect(await stores[0].state.counters.get(ref)).toBe(60);
  });

  siteCase(harness, "keys can be listed page by page and forgotten", async ({ open, openBeside }) => {
    const [store, beside] = [await open(), await openBeside("x")];
    const { counters } = store.state;
    const ops = new Ops("p");
    const keys = ["", "a", "b", "{c}", "Z", "a b", "ä", "[x", "(y", "-", "+"];
    for (const [i, key] of keys.entries()) await counters.add({ name: "c", key, by: i + 1, op: ops.next });
    await counters.add({ name: "a.b", key: "", by: 1, op: ops.next });
    expect(await counters.list()).toEqual(["a.b", "c"]);
    expect(await beside.state.counters.list()).toEqual([]);
    const found: { key: string; value: number }[] = [];
    for (let after: string | undefined; ;) {
      const page = await counters.page({ name: "c", n: 5, ...(after === undefined ? {} : { after }) });
      found.push(...page);
      if (page.length < 5) break;
      after = page.at(-1)?.key ?? "";
    }
    const sorted = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(found).toEqual(sorted.map((key) => ({ key, value: keys.indexOf(key) + 1 })));
    expect(await counters.page({ name: "c", n: 0 })).toEqual([]);
    expect(await counters.page({ name: "unused", n: 5 })).toEqual([]);
    expect(await counters.remove({ name: "c", key: "b" })).toBe("removed");
    expect(await counters.remove({ name: "c", key: "b" })).toBe("unknown");
    expect(await counters.get({ name: "c", key: "b" })).toBe(0);
    expect(await counters.page({ name: "c", n: 100 })).toHaveLength(keys.length - 1);
    for (const key of keys) await counters.remove({ name: "c", key });
    expect(await counters.list()).toEqual(["a.b"]);
    await store.wipe();
    expect(await counters.list()).toEqual([]);
    await counters.add({ name: "c", key: "", by: 1, op: ops.next });
    expect(await counters.list()).toEqual(["c"]);
  });
}
