// `fleet drain`, `cordon`, `uncordon` and `remove`, and placement by labels, with workers that run. `npm test`: on SQLite; `npm run
// soak`: on both stores.
import { describe, expect, test, vi } from "vitest";
import { statusReport } from "../src/control/status-report.ts";
import { makeProject, runFleet, startFleet } from "./support/cli.ts";
import { openPlace, placesFor, runningSlots } from "./support/places.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 120_000 });

const env = { FLEET_TIMINGS: JSON.stringify({ beatMs: 200, leaseMs: 3000, backoffBaseMs: 100 }) };

const STEADY = `
import { defineContinuous } from "fleet-framework";
export default defineContinuous("steady", {
  async runSlot(ctx) { for await (const _ of ctx.loop({ everySeconds: 0.1 })); },
});`;
const PICKY = STEADY.replace('"steady", {', '"picky", { labels: { region: "eu", gpus: 2 },');
/** Its task goes on for ever, whatever it is told. */
const DEAF = `
import { defineBatch } from "fleet-framework";
import { z } from "zod";
export default defineBatch("deaf", {
  tasks: { payload: z.string(), timeoutSeconds: 600 },
  async runOne() { await new Promise(() => setInterval(() => undefined, 1000)); },
});`;

describe.each(placesFor("a SQLite file"))("on $name", ({ at }) => {
  const setUp = async (deploy: object, files: Record<string, string>) => {
    const config = `export default { automations: ["./*.auto.ts"], deploy: ${JSON.stringify(deploy)} };`;
    const cwd = makeProject({ "fleet.config.ts": config, ...files });
    const place = at(cwd);
    const store = await openPlace(place);
    return {
      store,
      fleet: (...args: string[]) => runFleet([...args, ...place.flags], { cwd }),
      start: (...args: string[]) => startFleet([...args, ...place.flags], { cwd }),
      worker: (id: string, ...args: string[]) =>
        startFleet(["worker", "--id", id, ...args, ...place.flags], { cwd, env }),
      /** Ids of an automation's running slots, by worker. */
      slots: async (automation = "steady") => {
        const found: Record<string, number[]> = {};
        for (const [key, ids] of await runningSlots(store)) {
          const [name, slotId] = key.split("/");
          if (name === automation) for (const id of ids) (found[id] ??= []).push(Number(slotId));
        }
        for (const ids of Object.values(found)) ids.sort((a, b) => a - b);
        return found;
      },
      line: async (id: string) =>
        statusReport(await store.registry.view()).workers.find((worker) => worker.id === id),
    };
  };
  const settled = (fact: () => Promise<void>) => vi.waitFor(fact, { timeout: 25_000, interval: 100 });

  test("a cordoned worker keeps its slots and gets no new ones, also over a restart", async () => {
    const { store, fleet, worker, slots, line } = await setUp(
      { steady: { slots: 4 } },
      { "a.auto.ts": STEADY },
    );
    const one = worker("w1");
    worker("w2");
    await settled(async () =>
      expect(Object.values(await slots()).map(({ length }) => length)).toEqual([2, 2]),
    );
    const before = (await slots())["w1"];

    expect(await fleet("cordon", "w1")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("w1 is cordoned: what it has stays"),
    });
    expect((await fleet("cordon", "w1", "--json")).stdout).toBe('{"worker":"w1","changed":false}\n');
    expect(await fleet("scale", "steady", "8", "--wait", "25")).toMatchObject({ code: 0 });
    expect((await slots())["w1"]).toEqual(before);
    expect((await slots())["w2"]).toHaveLength(6);
    expect((await fleet("status")).stdout).toMatch(
      /w1 is cordoned by command line \(.+\) for .*: it gets no new slots/,
    );

    // Signed off, it loses them; back again, it is cordoned still.
    one.signal("SIGTERM");
    expect(await one.ended).toBe(0);
    await settled(async () => expect((await slots())["w2"]).toHaveLength(8));
    worker("w1");
    await settled(async () => expect(await line("w1")).toMatchObject({ state: "online", slots: 0 }));
    expect(await fleet("scale", "steady", "10", "--wait", "25")).toMatchObject({ code: 0 });
    expect(Object.keys(await slots())).toEqual(["w2"]);
    expect((await line("w1"))?.cordon?.by).toMatch(/^command line/);

    expect(await fleet("uncordon", "w1")).toMatchObject({ code: 0 });
    await settled(async () => expect((await slots())["w1"]).toHaveLength(5));
    expect(await fleet("uncordon", "w1")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("is not cordoned"),
    });
    await store.close();
  });

  test("drain ends the process as a signal does; its slots run elsewhere; then it can be forgotten", async () => {
    const { store, fleet, worker, slots, line } = await setUp(
      { steady: { slots: 2 } },
      { "a.auto.ts": STEADY },
    );
    const [one] = [worker("w1"), worker("w2")];
    await settled(async () => expect(Object.keys(await slots()).toSorted()).toEqual(["w1", "w2"]));

    const alive = await fleet("remove", "w1", "--json");
    expect(alive).toMatchObject({ code: 1, stdout: "" });
    expect(JSON.parse(alive.stderr)).toMatchObject({ code: "FLEET_WORKERS_ALIVE" });
    const unknown = await fleet("drain", "w11");
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('did you mean "w1"?') });

    expect(await fleet("drain", "w1", "--wait")).toEqual({
      code: 0,
      stderr: "",
      stdout: "w1 is asked to drain: it ends its slots and exits, after 60 s by force.\nw1 is gone.\n",
    });
    expect(await one.ended).toBe(0);
    expect(one.stderr()).toMatch(/asked by command line \(.+\): draining, for at most 60 s/);
    await settled(async () => expect((await slots())["w2"]).toEqual([0, 1]));
    expect((await fleet("drain", "w1")).stdout).toContain("w1 is offline already");

    // The drain was for that process: one that is started in its place takes part.
    const next = worker("w1");
    await settled(async () => expect((await slots())["w1"]).toHaveLength(1));
    expect((await line("w1"))?.drain).toBeNull();
    next.signal("SIGTERM");
    expect(await next.ended).toBe(0);
    expect(await fleet("remove", "w1")).toMatchObject({ code: 0 });
    expect(await line("w1")).toBeUndefined();
    expect(await fleet("remove", "w1")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("there is no worker"),
    });
    await store.close();
  });

  test("a drain that hangs says what it waits for; one that was forced ends with 5, here and there", async () => {
    const { store, fleet, start, worker, slots } = await setUp({ deaf: { slots: 1 } }, { "a.auto.ts": DEAF });
    const one = worker("w1");
    await settled(async () => expect(await slots("deaf")).toEqual({ w1: [0] }));
    const { stdout } = await fleet("task", "submit", "deaf", '"x"', "--json");
    const [, id = "-"] = /"id":\s*"([^"]+)"/.exec(stdout) ?? [];
    await settled(async () => expect((await store.queues.get({ queue: "deaf", id }))?.state).toBe("active"));

    const waiting = start("drain", "w1", "--deadline", "8", "--wait");
    await waiting.until((text) => text.includes("asked to drain"));
    const hang = new RegExp(
      `w1 drains for .* \\(asked by command line .*\\), by force in .*; it waits for deaf/0 \\(stopping for .*, task ${id} for `,
    );
    await settled(async () => {
      const late = await fleet("drain", "w1", "--wait", "0.1", "--json");
      expect(late.code).toBe(1);
      expect(JSON.parse(late.stderr)).toMatchObject({
        code: "FLEET_NOT_FOLLOWED",
        message: expect.stringMatching(hang),
      });
    });
    expect((await fleet("status")).stdout).toMatch(hang);
    expect(await waiting.ended).toBe(5);
    expect(waiting.stdout()).toContain("w1 is gone; the drain was forced.");
    expect(await one.ended).toBe(5);
    // It cost the task nothing.
    expect(await store.queues.get({ queue: "deaf", id })).toMatchObject({
      state: "waiting",
      attempts: 0,
      interruptions: 1,
    });
    await store.close();
  });

  test("a drain with another deadline takes the place of the one before, also of a signal's", async () => {
    const { store, fleet, worker, slots, line } = await setUp({ deaf: { slots: 1 } }, { "a.auto.ts": DEAF });
    const one = worker("w1", "--drain-seconds", "600");
    await settled(async () => expect(await slots("deaf")).toEqual({ w1: [0] }));
    const { stdout } = await fleet("task", "submit", "deaf", '"x"', "--json");
    const [, id = "-"] = /"id":\s*"([^"]+)"/.exec(stdout) ?? [];
    await settled(async () => expect((await store.queues.get({ queue: "deaf", id }))?.state).toBe("active"));
    const left = async () => (await line("w1"))?.drain?.left_seconds ?? 0;
    one.signal("SIGTERM");
    await settled(async () => expect(await left()).toBeGreaterThan(300));
    expect(await left()).toBeLessThanOrEqual(600);

    // Longer.
    expect((await fleet("drain", "w1", "--deadline", "5000")).stdout).toBe(
      "w1 drains already; it is asked to end by force after 5000 s from now.\n",
    );
    await settled(async () => expect(await left()).toBeGreaterThan(4000));
    expect((await line("w1"))?.drain?.by).toMatch(/^command line/);
    // Without one it is left as it is, and waited for.
    const late = await fleet("drain", "w1", "--wait", "0.1");
    expect(late.code).toBe(1);
    expect(late.stdout).toMatch(
      /^w1 drains already \(1 h \d+ m left\); nothing was changed\. --deadline gives /,
    );
    expect((await fleet("drain", "w1", "--deadline", "5000")).stdout).toContain("with that very deadline");
    expect(await left()).toBeGreaterThan(4000);

    // At once.
    expect(await fleet("drain", "w1", "--deadline", "0", "--wait", "60", "--json")).toMatchObject({
      code: 5,
      stdout: '{"worker":"w1","outcome":"moved","gone":true,"forced":true}\n',
    });
    expect(await one.ended).toBe(5);
    await store.close();
  });

  test("an automation that asks for labels runs only where they are, or says what is missing", async () => {
    const { store, fleet, worker, slots } = await setUp(
      { steady: { slots: 2 }, picky: { slots: 3 } },
      { "a.auto.ts": STEADY, "b.auto.ts": PICKY },
    );
    worker("w1");
    await settled(async () => expect((await slots())["w1"]).toEqual([0, 1]));
    const lacks =
      'no worker bears the labels that "picky" asks for: w1 lacks region=eu (it has no region) and gpus=2 (it has no gpus)';
    expect((await fleet("status")).stdout).toContain(lacks);
    expect((await fleet("explain", "picky")).stdout).toContain(lacks);
    expect((await fleet("scale", "picky", "2")).stdout).toContain(lacks);
    const two = worker("w2", "--labels", "region=eu,gpus=2");
    await settled(async () => expect(await slots("picky")).toEqual({ w2: [0, 1] }));
    two.signal("SIGTERM");
    expect(await two.ended).toBe(0);
    await settled(async () => expect(await slots("picky")).toEqual({}));
    expect((await fleet("status")).stdout).toContain(lacks);
    await store.close();
  });
});
