import { expect } from "vitest";
import { range, siteCase, type StoreHarness } from "./harness.ts";
import { declared } from "./producer.ts";
import { TEXTS } from "./streams-order.ts";

export function streamQuarantine(harness: StoreHarness): void {
  siteCase(
    harness,
    "entries put aside come back newest first, byte for byte, and are counted",
    async ({ open }) => {
      const store = await open();
      await declared(store, "t");
      const entries = TEXTS.map((raw, i) => ({ raw, reason: `reason ${i}: ümläut "quoted" []` }));
      for (const one of entries.slice(0, 2)) await store.streams.quarantine({ stream: "t", entries: [one] });
      await store.streams.quarantine({ stream: "t", entries: entries.slice(2) });
      expect(await store.streams.quarantined({ stream: "t", n: 100 })).toEqual(entries.toReversed());
      expect(await store.streams.quarantined({ stream: "t", n: 2 })).toEqual(
        entries.toReversed().slice(0, 2),
      );
      expect(await store.streams.stats({ stream: "t" })).toMatchObject({
        invalid: entries.length,
        length: 0,
      });
    },
  );

  siteCase(harness, "equal entries put aside are distinct", async ({ open }) => {
    const store = await open();
    await declared(store, "t");
    const twin = { raw: "not JSON", reason: "not JSON" };
    await store.streams.quarantine({ stream: "t", entries: [twin, twin] });
    await store.streams.quarantine({ stream: "t", entries: [twin] });
    expect(await store.streams.quarantined({ stream: "t", n: 9 })).toEqual([twin, twin, twin]);
  });

  siteCase(harness, "the newest 1000 are kept, all are counted", async ({ open }) => {
    const store = await open();
    await declared(store, "t");
    const aside = (from: number, to: number) =>
      store.streams.quarantine({
        stream: "t",
        entries: range(from, to).map((i) => ({ raw: String(i), reason: "r" })),
      });
    await aside(0, 900);
    await aside(900, 1100);
    const kept = async () =>
      (await store.streams.quarantined({ stream: "t", n: 5000 })).map(({ raw }) => Number(raw));
    expect(await kept()).toEqual(range(100, 1100).toReversed());
    await aside(1100, 11_100);
    expect(await kept()).toEqual(range(10_100, 11_100).toReversed());
    expect(await store.streams.stats({ stream: "t" })).toMatchObject({
      invalid: 11_100,
      pushed: 0,
      popped: 0,
    });
  });

  siteCase(harness, "nothing is put aside for a stream that nobody has declared", async ({ open }) => {
    const store = await open();
    await store.streams.quarantine({ stream: "t", entries: [{ raw: "x", reason: "y" }] });
    expect(await store.streams.stats({ stream: "t" })).toBeUndefined();
    expect(await store.streams.list()).toEqual([]);
    // Nor does it come up once the stream is there.
    await declared(store, "t");
    expect(await store.streams.quarantined({ stream: "t", n: 9 })).toEqual([]);
    expect(await store.streams.stats({ stream: "t" })).toMatchObject({ invalid: 0, popped: 0 });
  });

  siteCase(
    harness,
    "a stream without any has an empty quarantine, apart from other streams",
    async ({ open }) => {
      const store = await open();
      await declared(store, "a");
      await declared(store, "a.b");
      await store.streams.quarantine({ stream: "a.b", entries: [{ raw: "x", reason: "y" }] });
      expect(await store.streams.quarantined({ stream: "a", n: 9 })).toEqual([]);
      expect(await store.streams.quarantined({ stream: "never-declared", n: 9 })).toEqual([]);
    },
  );
}
