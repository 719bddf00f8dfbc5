import { expect } from "vitest";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";
import { LimitDriver, perWindow } from "./state-driver.ts";

export function limitCases(harness: StoreHarness): void {
  siteCase(harness, "permits are spread evenly over the window", async ({ open }) => {
    const clock = new HandClock();
    const limit = new LimitDriver(await open(clock.options), [perWindow(10, 1000)]);
    expect(await limit.take()).toEqual({ outcome: "granted", waitMs: 0, at: clock.ms });
    expect(await limit.take()).toEqual({ outcome: "later", waitMs: 100, at: clock.ms + 100 });
    clock.advance(99);
    expect(await limit.take()).toMatchObject({ outcome: "later", waitMs: 1 });
    clock.advance(1);
    expect(await limit.granted(3)).toBe(1);
    // What was not used is not saved up.
    clock.advance(60_000);
    expect(await limit.granted(3)).toBe(1);
  });

  siteCase(harness, "a burst may be taken at once, and grows again with time", async ({ open }) => {
    const clock = new HandClock();
    const limit = new LimitDriver(await open(clock.options), [perWindow(10, 1000, 4)]);
    expect(await limit.granted(9)).toBe(4);
    clock.advance(200);
    expect(await limit.granted(9)).toBe(2);
    clock.advance(60_000);
    expect(await limit.granted(9)).toBe(4);
    clock.advance(60_000);
    expect(await limit.take({ cost: 3 })).toMatchObject({ outcome: "granted", waitMs: 0 });
    expect(await limit.take({ cost: 2 })).toMatchObject({ outcome: "later", waitMs: 100 });
    expect(await limit.take({ cost: 1 })).toMatchObject({ outcome: "granted", waitMs: 0 });
    // More at once than a burst: as much later as it is more, and all of it is paid for.
    clock.advance(60_000);
    expect(await limit.take({ cost: 6 })).toMatchObject({ outcome: "later", waitMs: 200 });
    expect(await limit.take({ cost: 6, withinMs: 200 })).toMatchObject({ outcome: "granted", waitMs: 200 });
    expect(await limit.take()).toMatchObject({ outcome: "later", waitMs: 500 });
  });

  siteCase(harness, "all windows have to agree", async ({ open }) => {
    const clock = new HandClock();
    const windows = [perWindow(10, 1000), perWindow(15, 60_000, 15)];
    const limit = new LimitDriver(await open(clock.options), windows);
    let granted = 0;
    for (const _ of range(0, 40)) {
      granted += await limit.granted(2);
      clock.advance(100);
    }
    // 15 at once by the long window, and one more every 4 seconds.
    expect(granted).toBe(15);
    expect(await limit.take()).toMatchObject({ outcome: "granted" });
    expect(await limit.take()).toMatchObject({ outcome: "later", waitMs: 4000 });
  });

  siteCase(harness, "reservations are granted in the order in which they were made", async (site) => {
    const clock = new HandClock();
    const stores = await openThree(site, clock.options);
    const limits = stores.map((store) => new LimitDriver(store, [perWindow(10, 1000)]));
    const waits: number[] = [];
    for (const i of range(0, 6)) {
      const answer = await (limits[i % 3] as LimitDriver).take({ withinMs: 10_000 });
      expect(answer).toMatchObject({ outcome: "granted", at: clock.ms + answer.waitMs });
      waits.push(answer.waitMs);
    }
    expect(waits).toEqual([0, 100, 200, 300, 400, 500]);
    // Whoever does not want to wait so long takes nothing, and the next one gets its place.
    expect(await limits[0]?.take({ withinMs: 599 })).toMatchObject({ outcome: "later", waitMs: 600 });
    expect(await limits[1]?.take({ withinMs: 600 })).toMatchObject({ outcome: "granted", waitMs: 600 });
    clock.advance(600);
    expect(await limits[2]?.take()).toMatchObject({ outcome: "later", waitMs: 100 });
    expect(await limits[2]?.take({ withinMs: Number.POSITIVE_INFINITY })).toMatchObject({ waitMs: 100 });
  });

  siteCase(harness, "a repeat of a request gets the grant that it had", async ({ open }) => {
    const clock = new HandClock();
    const limit = new LimitDriver(await open(clock.options), [perWindow(10, 1000)]);
    await limit.take({ request: "a" });
    const second = await limit.take({ request: "b", withinMs: 1000 });
    expect(second).toMatchObject({ outcome: "granted", waitMs: 100 });
    clock.advance(60);
    expect(await limit.take({ request: "b", withinMs: 1000 })).toEqual({ ...second, waitMs: 40 });
    expect(await limit.take({ request: "a" })).toMatchObject({ outcome: "granted", waitMs: 0 });
    expect(await limit.take()).toMatchObject({ outcome: "later", waitMs: 140 });
  });

  siteCase(
    harness,
    "what was not used can be given back, and is as if never taken while nobody stands behind it",
    async ({ open }) => {
      const clock = new HandClock();
      const limit = new LimitDriver(await open(clock.options), [
        perWindow(10, 1000),
        perWindow(100, 60_000, 50),
      ]);
      await limit.take();
      const reserved = await limit.take({ withinMs: 1000 });
      expect(await limit.take()).toMatchObject({ outcome: "later", waitMs: 200 });
      expect(await limit.giveBack(reserved.at)).toBe("given-back");
      expect(await limit.giveBack(reserved.at)).toBe("too-late");
      expect(await limit.take({ withinMs: 1000 })).toMatchObject({ outcome: "granted", waitMs: 100 });
      const early = await limit.take({ withinMs: 1000 });
      await limit.take({ withinMs: 1000 });
      clock.advance(200);
      expect(await limit.giveBack(early.at)).toBe("too-late");
      expect(await limit.take()).toMatchObject({ outcome: "later", waitMs: 200 });
      expect(await new LimitDriver(await open(clock.options), limit.windows, "never").giveBack(1)).toBe(
        "too-late",
      );
    },
  );

  siteCase(harness, "a place in line that is given back goes to whoever asks next", async ({ open }) => {
    const clock = new HandClock();
    const stores = await Promise.all([open(clock.options), open(clock.options)]);
    const windows = [perWindow(10, 1000), perWindow(100, 60_000, 50)];
    const [limit, other] = stores.map((store) => new LimitDriver(store, windows)) as [
      LimitDriver,
      LimitDriver,
    ];
    const line = [];
    for (const _ of range(0, 6)) line.push((await limit.take({ withinMs: 1000 })).at);
    const places = line.map((at) => at - clock.ms);
    expect(places).toEqual([0, 100, 200, 300, 400, 500]);
    expect(await limit.giveBack(line[3] as number)).toBe("given-back");
    expect(await limit.giveBack(line[3] as number)).toBe("too-late");
    expect(await limit.giveBack(line[1] as number)).toBe("given-back");
    // The earliest first, where it is soon enough, and only for as many.
    expect(await other.take({ withinMs: 99 })).toMatchObject({ outcome: "later", waitMs: 100 });
    expect(await other.take({ withinMs: 100 })).toMatchObject({ outcome: "granted", waitMs: 100 });
    clock.advance(50);
    const again = await other.take({ withinMs: 1000 });
    expect(again).toMatchObject({ outcome: "granted", waitMs: 250 });
    expect(await other.take({ withinMs: 100 })).toMatchObject({ outcome: "later", waitMs: 550 });
    // It can be given back once more. One whose time has come is gone.
    expect(await other.giveBack(again.at)).toBe("given-back");
    clock.advance(251);
    expect(await other.take({ withinMs: 100 })).toMatchObject({ outcome: "later", waitMs: 299 });
  });

  siteCase(harness, "a line that is given back as a whole is as if it had never been", async ({ open }) => {
    const clock = new HandClock();
    const hour = 3_600_000;
    for (const [key, order] of ["123", "321", "213", "132"].entries()) {
      const limit = new LimitDriver(await open(clock.options), [perWindow(1, hour)], String(key));
      const line: number[] = [];
      for (const _ of range(0, 4)) line.push((await limit.take({ withinMs: 1e9 })).at);
      for (const place of order)
        expect(await limit.giveBack(line[Number(place)] as number)).toBe("given-back");
      // Not so what was used.
      expect(await limit.take()).toMatchObject({ outcome: "later", waitMs: hour });
      clock.advance(1.5 * hour);
      expect(await limit.take()).toMatchObject({ outcome: "granted", waitMs: 0 });
      expect(await limit.take()).toMatchObject({ outcome: "later", waitMs: hour });
    }
    const bursts = new LimitDriver(await open(clock.options), [perWindow(10, 1000, 3)], "bursts");
    const line: number[] = [];
    for (const _ of range(0, 6)) line.push((await bursts.take({ withinMs: 1000 })).at);
    expect(line.map((at) => at - clock.ms)).toEqual([0, 0, 0, 100, 200, 300]);
    for (const place of [3, 5, 4]) expect(await bursts.giveBack(line[place] as number)).toBe("given-back");
    expect(await bursts.take()).toMatchObject({ outcome: "later", waitMs: 100 });
  });

  siteCase(harness, "a changed limit goes on from what was taken", async ({ open }) => {
    const clock = new HandClock();
    const store = await open(clock.options);
    await new LimitDriver(store, [perWindow(10, 1000)]).granted(1);
    expect(await new LimitDriver(store, [perWindow(20, 1000)]).take()).toMatchObject({
      outcome: "later",
      waitMs: 100,
    });
    clock.advance(100);
    expect(await new LimitDriver(store, [perWindow(20, 1000)]).granted(1)).toBe(1);
    // A window that one call does not have still counts for those that have it.
    expect(await new LimitDriver(store, [perWindow(1000, 500)]).granted(1)).toBe(1);
    expect(await new LimitDriver(store, [perWindow(20, 1000)]).take()).toMatchObject({
      outcome: "later",
      waitMs: 50,
    });
  });

  siteCase(
    harness,
    "keys and names are limits of their own; they can be seen and are forgotten",
    async (site) => {
      const clock = new HandClock();
      const [store, beside] = [await site.open(clock.options), await site.openBeside("x", clock.options)];
      const { limits } = store.state;
      const windows = [perWindow(10, 1000, 3)];
      const keys = ["", "a", "{b} c;1", "ä\n"];
      for (const key of keys) expect(await new LimitDriver(store, windows, key).granted(5)).toBe(3);
      expect(await new LimitDriver(store, windows, "", "another").granted(5)).toBe(3);
      expect(await new LimitDriver(beside, windows).granted(5)).toBe(3);
      expect(await limits.list()).toEqual(["another", "l"]);
      clock.advance(150);
      const shown = await limits.show({ name: "l", n: 100 });
      expect(new Set(shown.map(({ key }) => key))).toEqual(new Set(keys));
      for (const { windows: of, freeAt } of shown) {
        expect(of).toEqual([{ limit: 10, perMs: 1000, burst: 3, available: 1 }]);
        expect(freeAt).toBe(clock.ms + 150);
      }
      expect(await limits.show({ name: "l", n: 2 })).toHaveLength(2);
      expect(await limits.show({ name: "unused", n: 2 })).toEqual([]);
      expect(await limits.sweep()).toEqual({ forgotten: 0 });
      clock.advance(150);
      expect(await limits.show({ name: "l", n: 100 })).toEqual([]);
      expect(await limits.sweep()).toEqual({ forgotten: 5 });
      expect(await limits.list()).toEqual([]);
      expect(await beside.state.limits.list()).toEqual(["l"]);
      expect(await new LimitDriver(store, windows).granted(5)).toBe(3);
      await store.wipe();
      expect(await limits.list()).toEqual([]);
      expect(await new LimitDriver(store, windows).granted(5)).toBe(3);
      expect(await limits.list()).toEqual(["l"]);
    },
  );

  siteCase(
    harness,
    "a rate limit: as many keys as are free again are forgotten, and no other",
    async ({ open }) => {
      const clock = new HandClock();
      const { limits } = (await open(clock.options)).state;
      const take = (key: string, perMs: number) =>
        limits.take({
          name: "l",
          key,
          windows: [{ limit: 1, perMs, burst: 1 }],
          cost: 1,
          withinMs: 0,
          request: key,
        });
      await Promise.all(range(0, 2500).map((n) => take(`k${n}`, 100)));
      await Promise.all(range(0, 3).map((n) => take(`later${n}`, 1000)));
      clock.advance(100);
      expect(await limits.sweep()).toEqual({ forgotten: 2500 });
      expect((await limits.show({ name: "l", n: 10 })).map(({ key }) => key)).toEqual([
        "later0",
        "later1",
        "later2",
      ]);
      expect(await limits.sweep()).toEqual({ forgotten: 0 });
    },
  );
}
