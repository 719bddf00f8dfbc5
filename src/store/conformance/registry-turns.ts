import { expect } from "vitest";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";

const TTL = 3000;

export function registryTurns(harness: StoreHarness): void {
  siteCase(harness, "only so many hold a turn at once, each automation for itself", async ({ open }) => {
    const { registry } = await open(new HandClock().options);
    const take = (holder: string, automation = "x", most = 2) =>
      registry.takeTurn({ automation, holder, most, ttlMs: TTL });
    expect(await take("a")).toBe("taken");
    expect(await take("b")).toBe("taken");
    expect(await take("c")).toBe("full");
    expect(await take("c", "x", 3)).toBe("taken");
    expect(await take("a", "y", 1)).toBe("taken");
    expect(await take("b", "y", 1)).toBe("full");
    // Names that begin alike are not the same.
    expect(await take("b", "y.z", 1)).toBe("taken");
    // Its holder renews it also where fewer would be let in by now.
    expect(await take("b", "x", 1)).toBe("taken");
    await registry.endTurn({ automation: "x", holder: "nobody" });
    expect(await take("d", "x", 3)).toBe("full");
    await registry.endTurn({ automation: "x", holder: "c" });
    expect(await take("d", "x", 3)).toBe("taken");
    await registry.endTurn({ automation: "y", holder: "a" });
    expect(await take("b", "y", 1)).toBe("taken");
    expect(await take("e", "x", 3)).toBe("full");
  });

  siteCase(harness, "a turn ends at its time unless it is renewed", async ({ open }) => {
    const clock = new HandClock();
    const { registry } = await open(clock.options);
    const take = (holder: string) => registry.takeTurn({ automation: "x", holder, most: 1, ttlMs: TTL });
    expect(await take("a 1")).toBe("taken");
    clock.advance(TTL - 1);
    expect(await take("b 1")).toBe("full");
    expect(await take("a 1")).toBe("taken");
    clock.advance(TTL - 1);
    expect(await take("b 1")).toBe("full");
    clock.advance(1);
    expect(await take("b 1")).toBe("taken");
    expect(await take("a 1")).toBe("full");
  });

  siteCase(harness, "under contention no more than allowed have a turn", async (site) => {
    const stores = await openThree(site);
    for (const round of range(0, 8)) {
      const answers = await Promise.all(
        range(0, 9).map((i) =>
          (stores[i % 3] as (typeof stores)[0]).registry.takeTurn({
            automation: `x${round}`,
            holder: `h${i}`,
            most: 4,
            ttlMs: 60_000,
          }),
        ),
      );
      expect(answers.filter((answer) => answer === "taken")).toHaveLength(4);
    }
  });

  siteCase(harness, "a wipe takes turns along", async ({ open }) => {
    const store = await open();
    const take = (holder: string) =>
      store.registry.takeTurn({ automation: "x", holder, most: 1, ttlMs: 60_000 });
    expect(await take("a")).toBe("taken");
    await store.wipe();
    expect(await take("b")).toBe("taken");
  });
}
