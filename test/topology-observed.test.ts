// Short (`npm test`): what automations and named programs use is counted to the last entry, and shown by `readTopology` and `fleet graph`.
import { describe, expect, it, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { defineBatch } from "../src/automation/definition-batch.ts";
import { defineContinuous } from "../src/automation/definition.ts";
import { fleetOn } from "../src/automation/fleet.ts";
import { definePool } from "../src/contracts/pool.ts";
import { defineQueue } from "../src/contracts/queue.ts";
import { defineStream } from "../src/contracts/stream.ts";
import { defineTopic } from "../src/contracts/topic.ts";
import { readTopology } from "../src/control/read-topology.ts";
import { openFleet } from "../src/index.ts";
import { SILENT } from "../src/internal/log.ts";
import type { Store } from "../src/store/store.ts";
import { inlineWorker, KINDS } from "./support/batch-worker.ts";
import { makeProject, runFleet } from "./support/cli.ts";
import { openPlace, PLACES } from "./support/places.ts";

vi.setConfig({ testTimeout: 60_000 });

const INPUT = defineStream("input", z.number());
const OUT = defineStream("maker", z.number());
const WORK = defineQueue("work", z.number());
const KEYS = definePool("keys", { payload: z.number() });
const TOLD = defineTopic("told", z.number());

/** How often each edge was counted. */
async function counts(store: Store, framework = false): Promise<Record<string, number | null>> {
  const { edges } = await readTopology(store, { framework });
  return Object.fromEntries(
    edges.map(({ from, to, direction, observed }) => [`${from} ${direction} ${to}`, observed?.count ?? null]),
  );
}

describe.each(KINDS)("in automations on %s", (kind) => {
  it("each use is counted in its direction, and nothing else is", async () => {
    const heard: number[] = [];
    const done: number[] = [];
    const maker = defineContinuous("maker", {
      output: OUT,
      uses: { publish: [TOLD] },
      async runSlot(ctx) {
        const inbox = ctx.events.subscribe(TOLD);
        const all = ctx.events.subscribe("to*");
        const own = ctx.events.subscribe("fleet.slot.*");
        await Promise.all([inbox.ready, all.ready, own.ready]);
        for (const n of [1, 2, 3]) await ctx.emit(n);
        await ctx.emitMany([4, 5]);
        await expect(ctx.emit("no" as never)).rejects.toThrow("number");
        const taken: number[] = [];
        while (taken.length < 4) taken.push(...(await ctx.stream(INPUT).pop({ n: 3, waitSeconds: 1 })));
        await ctx.stream(INPUT).peek({ n: 10 });
        await ctx.stream(OUT).length();
        await ctx.submit(WORK, 1);
        await ctx.queue(WORK).submitMany([2, 3]);
        await ctx.call(WORK, 4);
        await ctx.pool(KEYS).putMany([{ payload: 1 }, { payload: 2 }]);
        await ctx.pool(KEYS).put({ payload: 3 });
        const leases = await ctx.pool(KEYS).claimMany(2);
        expect(leases).toHaveLength(2);
        for (const n of [1, 2]) await ctx.events.publish(TOLD, n);
        for await (const { payload } of inbox) if (heard.push(payload) === 2) break;
        await all.next();
        await ctx.lock("l");
        await ctx.counter("c").add();
        done.push(1);
        while (!ctx.signal.aborted) await ctx.sleep(60);
      },
    });
    const work = defineBatch("work", {
      tasks: WORK,
      async runOne(task, ctx) {
        const lease = await ctx.pool(KEYS).claim();
        if (task.payload === 2 && task.attempt === 1) throw new Error("once more");
        return lease?.id ?? null;
      },
    });
    const { store, fleet, worker } = await inlineWorker(kind, [
      [maker, 1],
      [work, 1],
    ]);
    const input = fleet.stream(INPUT);
    for (const n of [1, 2, 3, 4, 5]) await input.push(n);
    await expect.poll(() => done.length, { timeout: 30_000 }).toBe(1);
    const ended = async () => (await store.queues.stats({ queue: "work" }))?.totals.completed;
    await expect.poll(ended, { timeout: 20_000 }).toBe(4);
    await worker.drain();
    const found = await counts(store);
    // How many there were, in pops of up to three.
    const popped = found["stream:input pop automation:maker"];
    expect([4, 5]).toContain(popped);
    const claimed = found["pool:keys claim automation:work"];
    expect(claimed).toBeLessThanOrEqual(5);
    expect(found).toEqual({
      "automation:maker emit stream:maker": 5,
      "automation:maker submit queue:work": 4,
      "automation:maker put pool:keys": 3,
      "automation:maker publish topic:told": 2,
      "pool:keys claim automation:maker": 2,
      "pool:keys claim automation:work": claimed,
      "queue:work run automation:work": 5,
      "stream:input pop automation:maker": popped,
      "topic:to* subscribe automation:maker": 1,
      "topic:told subscribe automation:maker": 2,
      "topic:told match topic:to*": null,
    });
    // The fleet that has pushed bears no name.
    expect(Object.keys(found).join()).not.toContain("external");
    expect(await counts(store, true)).toHaveProperty("topic:fleet.slot.* subscribe automation:maker");
  });
});

describe.each(PLACES)("a program outside on $name", ({ at }) => {
  test("is in the graph by its name, and without one in none", async () => {
    const cwd = makeProject();
    const place = at(cwd);
    const store = await openPlace(place);
    onTestFinished(() => store.close());
    for (const source of ["nightly import", undefined]) {
      await using fleet = await openFleet({ store: place.url, namespace: place.namespace, source });
      for (const n of [1, 2, 3]) await fleet.stream(INPUT).push(n);
      expect(await fleet.stream(INPUT).pop({ n: 2 })).toHaveLength(2);
      await fleet.submit(WORK, 1);
      await fleet.pool(KEYS).put({ payload: 1 });
      await (await fleet.pool(KEYS).claim())?.release();
      await fleet.events.publish(TOLD, 1);
    }
    const me = "external:nightly import";
    expect(await counts(store)).toEqual({
      [`${me} push stream:input`]: 3,
      [`stream:input pop ${me}`]: 2,
      [`${me} submit queue:work`]: 1,
      [`${me} put pool:keys`]: 1,
      [`pool:keys claim ${me}`]: 1,
      [`${me} publish topic:told`]: 1,
    });

    const graph = (...args: string[]) => runFleet(["graph", ...args, ...place.flags], { cwd });
    const [mermaid, dot, json, same, both] = await Promise.all([
      graph(),
      graph("--format", "dot"),
      graph("--format", "json"),
      graph("--json"),
      graph("--json", "--format", "dot"),
    ]);
    expect([mermaid, dot, json, same].map(({ code, stderr }) => [code, stderr])).toEqual(
      Array.from({ length: 4 }, () => [0, ""]),
    );
    expect(mermaid.stdout).toMatch(/^flowchart LR\n/);
    expect(mermaid.stdout).toContain('n1(["nightly import<br/>external"])');
    expect(mermaid.stdout).toMatch(/\[\("input<br\/>stream, 2 entries, oldest \d+ m?s"\)\]/);
    expect(dot.stdout).toMatch(/^digraph fleet \{\n[^]*label="nightly import\\nexternal"[^]*\}\n$/);
    const edges = (text: string) => (JSON.parse(text) as { edges: unknown[] }).edges;
    expect(edges(json.stdout)).toHaveLength(6);
    expect(Object.keys(JSON.parse(same.stdout) as object)).toEqual([
      "now",
      "nodes",
      "edges",
      "without_figures",
    ]);
    expect(both).toMatchObject({ code: 2, stdout: "" });
    expect(both.stderr).toContain("--json and --format dot do not go together");
    expect(await graph("--format", "svg")).toMatchObject({ code: 2, stdout: "" });
  });
});

test("a store that is away costs the end of a program no more than a second", async () => {
  const place = (PLACES[0] as (typeof PLACES)[0]).at(makeProject());
  const store = await openPlace(place);
  let asked = 0;
  const away = {
    ...store,
    edges: { ...store.edges, observe: () => (asked++, new Promise<void>(() => undefined)) },
  };
  const fleet = fleetOn(away, { log: SILENT, observedAs: "me" });
  await fleet.stream(INPUT).push(1);
  await fleet.close();
  expect(asked).toBe(1);
});
