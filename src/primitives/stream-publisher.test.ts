import { expect, it } from "vitest";
import { z } from "zod";
import { defineStream } from "../contracts/stream.ts";
import { entryTemplate } from "../protocol/envelope.ts";
import type { Store } from "../store/store.ts";
import { StreamPublisher } from "./stream-publisher.ts";

it("leaves out of a call what a slot may not write any more by then, and writes what waited beside it", async () => {
  const calls: string[][] = [];
  const answers: (() => void)[] = [];
  const store = {
    streams: {
      declare: ({ bounds }: { bounds: object }) => Promise.resolve(bounds),
      push: ({ entries }: { entries: readonly { id: string }[] }) => {
        calls.push(entries.map(({ id }) => id));
        return new Promise((resolve) => answers.push(() => resolve({ outcome: "pushed" })));
      },
    },
    traits: { entriesPerPush: 100 },
  } as unknown as Store;
  const lost = new Set<number>();
  const publisher = new StreamPublisher(store, defineStream("s", z.number()), "owner", (slotId) => {
    if (lost.has(slotId)) throw new Error(`slot ${slotId} has lost its lease`);
  });
  const push = (id: string, slotId: number | null) =>
    publisher.push(entryTemplate(id, slotId, "1"), slotId, () => undefined);

  const first = push("first", 0);
  await expect.poll(() => calls).toEqual([["first"]]);
  const waited = [push("of 0", 0), push("of 1", 1), push("of nobody", null)];
  lost.add(0);
  answers.shift()?.();
  // Under way before: it is written, and that is what its caller hears.
  await first;
  await expect.poll(() => calls.length).toBe(2);
  answers.shift()?.();
  await expect(waited[0]).rejects.toThrow("slot 0 has lost its lease");
  await Promise.all(waited.slice(1));
  expect(calls[1]).toEqual(["of 1", "of nobody"]);

  lost.add(1);
  await expect(Promise.allSettled([push("a", 0), push("b", 1)])).resolves.toMatchObject([
    { status: "rejected" },
    { status: "rejected" },
  ]);
  expect(calls).toHaveLength(2);
});
