import { describe, expect, it, vi } from "vitest";
import type { FromHost } from "../protocol/host.ts";
import { ConfigOffers } from "./config-offers.ts";

function offers() {
  const said: FromHost[] = [];
  const taking: { n: number; done: (took: boolean) => void; fail: (error: Error) => void }[] = [];
  const hearing = new ConfigOffers({
    check: (config) => (config === 13 ? Promise.reject(new Error("unlucky")) : Promise.resolve(config)),
    take: (_slotId, config) =>
      new Promise((done, fail) => void taking.push({ n: config as number, done, fail })),
    wordsOf: (error) => (error as Error).message,
    say: (message) => void said.push(message),
  });
  const offer = (n: number, live = true, slotId = 0) =>
    hearing.hear({ type: "config", slotId, config: n, configKey: String(n), generation: n, live });
  return { said, taking, offer };
}
const about = (n: number, slotId = 0) => ({ slotId, configKey: String(n), generation: n });

describe("ConfigOffers", () => {
  it("answers whether a config fits, and takes nothing", async () => {
    const { said, taking, offer } = offers();
    offer(1, false);
    await vi.waitFor(() => expect(said).toEqual([{ type: "config-fits", ...about(1) }]));
    offer(13, false);
    await vi.waitFor(() =>
      expect(said[1]).toEqual({ type: "config-rejected", ...about(13), reason: "unlucky" }),
    );
    expect(taking).toEqual([]);
  });

  it("takes one after another; of those that wait only the last counts", async () => {
    const { said, taking, offer } = offers();
    for (const n of [1, 2, 3]) offer(n);
    offer(9, true, 1);
    await vi.waitFor(() => expect(taking.map(({ n }) => n)).toEqual([1, 9]));
    expect(said).toEqual([]);
    taking[0]?.done(true);
    await vi.waitFor(() => expect(taking.map(({ n }) => n)).toEqual([1, 9, 3]));
    taking[2]?.fail(new Error("not now"));
    await vi.waitFor(() =>
      expect(said).toEqual([
        { type: "config-applied", ...about(1) },
        { type: "config-rejected", ...about(3), reason: "not now" },
      ]),
    );
  });

  it("does not answer for a run that is over, and goes on with the next", async () => {
    const { said, taking, offer } = offers();
    offer(1);
    await vi.waitFor(() => expect(taking).toHaveLength(1));
    taking[0]?.done(false);
    offer(2, false);
    await vi.waitFor(() => expect(said).toEqual([{ type: "config-fits", ...about(2) }]));
  });
});
