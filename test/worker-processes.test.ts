// Short (`npm test`): real `fleet worker` processes on one shared store, with the default times (lease 10 s).
import { describe, expect, test, vi } from "vitest";
import { defineStream } from "../src/contracts/stream.ts";
import { z } from "zod";
import { fleetOn } from "../src/automation/fleet.ts";
import { SILENT } from "../src/internal/log.ts";
import type { Store } from "../src/store/store.ts";
import { makeProject, startFleet } from "./support/cli.ts";
import { openPlace, PLACES, runningSlots, slotStatus } from "./support/places.ts";
import { descendants, isAlive } from "./support/processes.ts";

const SEED = {
  "producer.ts": `
    import { defineContinuous, defineStream } from "fleet-framework";
    import { z } from "zod";
    export const OUT = defineStream("producer", z.object({ n: z.number(), slot: z.number(), worker: z.string() }));
    export default defineContinuous("producer", {
      output: OUT,
      async runSlot(ctx) {
        for await (const turn of ctx.loop({ everySeconds: 0.1 })) await ctx.emit({ n: turn.index, slot: ctx.slotId, worker: ctx.worker });
      },
    });`,
  "logger.ts": `
    import { defineContinuous } from "fleet-framework";
    import { OUT } from "./producer.ts";
    export default defineContinuous("logger", {
      async runSlot(ctx) {
        for await (const item of ctx.stream(OUT)) console.log("got", item.n);
      },
    });`,
};
const OUT = defineStream("producer", z.object({ n: z.number(), slot: z.number(), worker: z.string() }));

describe.each(PLACES)("on $name", ({ at }) => {
  test("data flows between two worker processes that run different automations", async () => {
    const cwd = makeProject(SEED);
    const { flags } = at(cwd);
    const producer = startFleet(["worker", "producer.ts", ...flags], { cwd });
    const logger = startFleet(["worker", "logger.ts", ...flags], { cwd });
    await logger.until((text) => text.includes("got 5"));
    for (const worker of [producer, logger]) worker.signal("SIGTERM");
    expect(await producer.ended).toBe(0);
    expect(await logger.ended).toBe(0);
    expect(
      logger
        .stdout()
        .match(/got \d+/g)
        ?.slice(0, 6),
    ).toEqual(["got 0", "got 1", "got 2", "got 3", "got 4", "got 5"]);
  });

  test("a second worker takes its share; what a killed one ran is taken over; no process is left behind", async () => {
    const cwd = makeProject({
      ...SEED,
      "fleet.config.ts": `
        import { defineConfig } from "fleet-framework";
        export default defineConfig({ automations: ["./producer.ts"], deploy: { producer: { slots: 4 } } });`,
    });
    const shared = at(cwd);
    const store = await openPlace(shared);
    const fleet = fleetOn(store, { log: SILENT });
    const one = startFleet(["worker", "--id", "one", ...shared.flags], { cwd });
    const alone = ["producer/0", "producer/1", "producer/2", "producer/3"].map((slot) => [slot, ["one"]]);
    await vi.waitFor(async () => expect(await sortedSlots(store)).toEqual(alone), {
      timeout: 20_000,
      interval: 200,
    });

    const two = startFleet(["worker", "--id", "two", ...shared.flags], { cwd });
    await two.until((text) => text.includes("running producer"));
    const started = performance.now();
    const owners = async () => [...(await runningSlots(store)).values()];
    await vi.waitFor(
      async () => {
        const found = (await owners()).map(String).toSorted((a, b) => a.localeCompare(b));
        expect(found).toEqual(["one", "one", "two", "two"]);
      },
      { timeout: 15_000, interval: 200 },
    );
    expect(performance.now() - started).toBeLessThan(10_000);
    // Each slot is run by exactly one worker: nobody else emits for it.
    await fleet.stream(OUT).pop({ n: 10_000 });
    const emitted = await vi.waitFor(
      async () => {
        const entries = await fleet.stream(OUT).peek({ n: 10_000 });
        expect(new Set(entries.map((entry) => entry.slot)).size).toBe(4);
        return entries;
      },
      { timeout: 10_000, interval: 100 },
    );
    const pairs = new Set(emitted.map((entry) => `${entry.slot} ${entry.worker}`));
    expect(pairs.size).toBe(4);

    const children = descendants(two.pid);
    expect(children.length).toBeGreaterThan(0);
    two.signal("SIGKILL");
    await two.ended;
    const killed = performance.now();
    await vi.waitFor(() => expect(children.filter(isAlive)).toEqual([]), { timeout: 5000, interval: 100 });
    await vi.waitFor(async () => expect(await sortedSlots(store)).toEqual(alone), {
      timeout: 20_000,
      interval: 200,
    });
    // The bound of docs/guarantees.md: lease (10 s) and about 2 s to notice, claim and start.
    expect(performance.now() - killed).toBeLessThan(15_000);

    const left = descendants(one.pid);
    one.signal("SIGINT");
    expect(await one.ended).toBe(0);
    expect(left.filter(isAlive)).toEqual([]);
    await fleet.close();
  }, 90_000);

  test("what ends a child process costs that automation only; it starts again with the cause on record", async () => {
    const cwd = makeProject({
      ...SEED,
      "quitter.ts": `
        import { defineContinuous } from "fleet-framework";
        export default defineContinuous("quitter", {
          async runSlot(ctx) {
            const runs = ((await ctx.state.get()) as number | undefined) ?? 0;
            await ctx.state.set(runs + 1);
            if (runs === 0) process.exit(0);
            if (runs === 1) setTimeout(() => { throw new Error("thrown in a timer"); }, 1);
            await ctx.sleep(600);
          },
        });`,
    });
    const shared = at(cwd);
    const store = await openPlace(shared);
    const worker = startFleet(["worker", "producer.ts", "quitter.ts", ...shared.flags], { cwd });
    await worker.until((text) => text.includes("exit code 0"));
    await worker.until((text) => text.includes("thrown in a timer"));
    await vi.waitFor(
      async () => {
        expect(await slotStatus(store, "quitter")).toMatchObject({
          state: "running",
          restarts: 2,
          lastError: expect.stringContaining("thrown in a timer"),
        });
      },
      { timeout: 20_000, interval: 200 },
    );
    expect(await slotStatus(store, "producer")).toMatchObject({
      state: "running",
      restarts: 0,
      lastError: null,
    });
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
    await store.close();
  }, 60_000);
});

async function sortedSlots(store: Store): Promise<[string, string[]][]> {
  return [...(await runningSlots(store))].toSorted(([a], [b]) => a.localeCompare(b));
}
