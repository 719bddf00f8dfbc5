// Short (`npm test`): two workers with different code of one automation: drift and a broken contract are told and shown, on both stores.
import { describe, expect, test, vi } from "vitest";
import { makeProject, runFleet, startFleet } from "./support/cli.ts";
import { openPlace, placesFor } from "./support/places.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 120_000 });

const env = { FLEET_TIMINGS: JSON.stringify({ beatMs: 200, leaseMs: 3000 }) };

const project = (field: string) =>
  makeProject({
    "fleet.config.ts": `export default { automations: ["./*.auto.ts"] };`,
    "a.auto.ts": `
      import { defineContinuous, defineStream } from "fleet-framework";
      import { z } from "zod";
      const idle = async (ctx) => { for await (const _ of ctx.loop({ everySeconds: 0.5 })); };
      export default [
        defineContinuous("pinger", { output: z.object({ n: ${field} }), runSlot: idle }),
        defineContinuous("reader", {
          uses: { pop: [defineStream("pinger", z.object({ n: z.number() }))] },
          runSlot: idle,
        }),
      ];`,
  });

describe.each(placesFor("a SQLite file"))("on $name", ({ at }) => {
  test("is told when it appears, and shown while it lasts", async () => {
    const [old, fresh] = [project("z.int()"), project("z.string()")];
    const place = at(old);
    const store = await openPlace(place);
    const fleet = (...args: string[]) => runFleet([...args, ...place.flags], { cwd: old });
    const worker = (id: string, cwd: string) =>
      startFleet(["worker", "--id", id, ...place.flags], { cwd, env });

    const one = worker("w1", old);
    await one.until((text) => text.includes("running pinger, reader"));
    const tail = startFleet(
      ["event", "tail", "fleet.version.*", "fleet.contract.*", "--json", ...place.flags],
      { cwd: old },
    );
    // It has subscribed when it shows what is published.
    await vi.waitFor(
      async () => {
        await store.events.publish({ topic: "fleet.version.probe", source: "test", payload: "1" });
        expect(tail.stdout()).toContain("fleet.version.probe");
      },
      { timeout: 20_000, interval: 200 },
    );
    expect((await fleet("status")).stdout).not.toMatch(/broken contract|versions:/);

    const two = worker("w2", fresh);
    await tail.until(
      (text) => text.includes("fleet.contract.broken") && text.includes("fleet.version.drift"),
    );
    const told = tail
      .stdout()
      .split("\n")
      .filter((line) => line !== "" && !line.includes("probe"))
      .map((line) => JSON.parse(line) as { topic: string; payload: Record<string, unknown> });
    expect(told.find(({ topic }) => topic === "fleet.contract.broken")?.payload).toMatchObject({
      kind: "stream",
      name: "pinger",
      giver: "pinger",
      taker: "reader",
      pointer: "/n",
      reason: "is given as a text, but taken as a number",
    });
    expect(told.find(({ topic }) => topic === "fleet.version.drift")?.payload).toMatchObject({
      workers: ["w1", "w2"],
    });

    const { stdout } = await fleet("status");
    expect(stdout).toMatch(/pinger {2}.*, 2 versions: w[12] has [0-9a-f]{8}, w[12] has [0-9a-f]{8}\n/);
    expect(stdout).toMatch(
      /broken contract: stream "pinger" from pinger@[0-9a-f]{8} to reader@[0-9a-f]{8}: \/n is given as a text/,
    );
    const explained = (await fleet("explain", "reader")).stdout;
    expect(explained).toContain("workers have 2 versions of it");
    expect(explained).toContain('broken contract: stream "pinger"');

    two.signal("SIGTERM");
    expect(await two.ended).toBe(0);
    expect((await fleet("status")).stdout).not.toMatch(/broken contract|versions:/);
    await store.close();
  });
});
