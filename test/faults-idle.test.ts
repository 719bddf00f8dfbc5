// Short settings; part of `npm test`. What a store does when nobody asks it anything (field case 34, at store level).
import { createClient } from "@redis/client";
import { expect, it } from "vitest";
import { range } from "../src/store/conformance/harness.ts";
import { declared } from "../src/store/conformance/producer.ts";
import { openStore } from "../src/store/open.ts";
import { startRedis } from "./support/redis.ts";

const SECONDS = 5;

it(
  "34: ten idle stores with eight watches each make at most one call per second each",
  { timeout: 60_000 },
  async () => {
    const server = await startRedis();
    const admin = await createClient({ url: server.url })
      .on("error", () => undefined)
      .connect();
    const stores = await Promise.all(range(0, 10).map(() => openStore(server.url, { namespace: "n" })));
    try {
      const hints: number[] = [];
      const watches = stores.flatMap((store, i) => [
        ...range(0, 6).map((n) => store.streams.watch({ stream: `s${n}` }, () => hints.push(i))),
        store.events.subscribe({ pattern: "*" }, () => {}),
        store.registry.watch(() => {}),
      ]);
      await Promise.all(watches.map(({ ready }) => ready));
      const commands = async () => {
        const text = await admin.sendCommand<string>(["INFO", "stats"]);
        return Number(/total_commands_processed:(\d+)/.exec(text)?.[1]);
      };
      const before = await commands();
      await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000));
      // The second INFO counts as one.
      const calls = (await commands()) - before - 1;
      expect(calls).toBeLessThanOrEqual(stores.length * SECONDS);
      // They are idle, not dead: a push wakes all ten.
      await (await declared(stores[0] as (typeof stores)[0], "s0")).push(1);
      await expect.poll(() => new Set(hints).size, { timeout: 2000 }).toBe(10);
      await Promise.all(watches.map((watch) => watch.close()));
    } finally {
      admin.destroy();
      await Promise.all(stores.map((store) => store.close()));
      await server.stop();
    }
  },
);
