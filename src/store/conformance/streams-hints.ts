import { expect } from "vitest";
import { HandClock, range, siteCase, type StoreHarness, until } from "./harness.ts";
import { declared, payloads, Producer } from "./producer.ts";

/** Hints within this time count as prompt; a poll that a waiting consumer falls back to is slower. */
const PROMPT_MS = 2000;

export function streamHints(harness: StoreHarness): void {
  siteCase(
    harness,
    "a push into an empty stream hints, from this and from another connection",
    async ({ open }) => {
      const [waiting, pushing] = await Promise.all([open(), open()]);
      const producer = await declared(pushing, "t");
      const own = new Producer(waiting, "t");
      let hints = 0;
      const watch = waiting.streams.watch({ stream: "t" }, () => (hints += 1));
      await watch.ready;
      for (const round of range(0, 20)) {
        const before = hints;
        await (round % 2 === 0 ? producer : own).push(round);
        await until(`hint of round ${round}`, () => hints > before, PROMPT_MS);
        expect(payloads(await waiting.streams.pop({ stream: "t", n: 5 }))).toEqual([round]);
      }
      await watch.close();
    },
  );

  siteCase(harness, "a consumer that waits by hints alone drains everything", async ({ open }) => {
    const [waiting, pushing] = await Promise.all([open(), open()]);
    const producer = await declared(pushing, "t");
    const got: unknown[] = [];
    let popping: Promise<void> | undefined;
    let again = false;
    const drain = async () => {
      do {
        again = false;
        let raws: string[];
        do {
          raws = await waiting.streams.pop({ stream: "t", n: 3 });
          got.push(...payloads(raws));
        } while (raws.length > 0);
      } while (again);
      popping = undefined;
    };
    const watch = waiting.streams.watch({ stream: "t" }, () => {
      again = true;
      popping ??= drain();
    });
    await watch.ready;
    for (const i of range(0, 300)) await producer.push(i);
    await until("all 300 drained", () => got.length === 300);
    expect(got).toEqual(range(0, 300));
    await watch.close();
    await popping;
  });

  siteCase(
    harness,
    "a stream of expired leftovers counts as empty: the next push hints",
    async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      const producer = await declared(store, "t");
      await producer.push("leftover");
      clock.advance(60_000);
      let hints = 0;
      const watch = store.streams.watch({ stream: "t" }, () => (hints += 1));
      await watch.ready;
      await producer.push("fresh");
      await until("hint", () => hints > 0, PROMPT_MS);
      await watch.close();
    },
  );

  siteCase(harness, "a watch may come before the declaration", async ({ open }) => {
    const [waiting, pushing] = await Promise.all([open(), open()]);
    let hints = 0;
    const watch = waiting.streams.watch({ stream: "t" }, () => (hints += 1));
    await watch.ready;
    await (await declared(pushing, "t")).push(1);
    await until("hint", () => hints > 0, PROMPT_MS);
    await watch.close();
  });

  siteCase(
    harness,
    "each watch of a stream is hinted until it is closed; other streams stay silent",
    async ({ open }) => {
      const [waiting, pushing] = await Promise.all([open(), open()]);
      const producer = await declared(pushing, "t");
      await declared(pushing, "t.other");
      const counts = [0, 0, 0];
      const watches = ["t", "t", "t.other"].map((stream, i) =>
        waiting.streams.watch({ stream }, () => ((counts[i] as number) += 1)),
      );
      await Promise.all(watches.map(({ ready }) => ready));
      await producer.push(1);
      await until("both watches hinted", () => counts[0] !== 0 && counts[1] !== 0, PROMPT_MS);
      await watches[0]?.close();
      await waiting.streams.pop({ stream: "t", n: 9 });
      const [closed, open2] = counts as [number, number];
      await producer.push(2);
      await until("the open watch hinted", () => (counts[1] as number) > open2, PROMPT_MS);
      expect(counts[0]).toBe(closed);
      expect(counts[2]).toBe(0);
      await Promise.all(watches.map((watch) => watch.close()));
      await watches[0]?.close();
    },
  );

  siteCase(harness, "a watch that has closed can be opened again", async ({ open }) => {
    const store = await open();
    const producer = await declared(store, "t");
    for (const round of range(0, 5)) {
      let hints = 0;
      const watch = store.streams.watch({ stream: "t" }, () => (hints += 1));
      await watch.ready;
      await producer.push(round);
      await until(`hint of round ${round}`, () => hints > 0, PROMPT_MS);
      await watch.close();
      await store.streams.pop({ stream: "t", n: 9 });
    }
  });
}
