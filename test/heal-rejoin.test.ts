// Short (`npm test`): a worker that slept through changes comes back with an older generation. Real processes on Redis (a process that is
// stopped in the midst of a write holds a SQLite file), lease 3 s.
import { expect, test, vi } from "vitest";
import { patchConfig } from "../src/control/config.ts";
import { healFleet, measured, ms } from "./support/heal-fleet.ts";
import { PLACES, slotStatus } from "./support/places.ts";
import { descendants } from "./support/processes.ts";

const FILES = {
  "keeper.ts": `
    import { defineContinuous } from "fleet-framework";
    import { z } from "zod";
    import { note } from "./tools.ts";
    export default defineContinuous("keeper", {
      config: z.object({ n: z.number() }),
      async runSlot(ctx) {
        note(ctx, "start", { n: ctx.config.n });
        for await (const _ of ctx.loop({ everySeconds: 0.05 }));
      },
    });`,
  "fleet.config.ts": `export default { automations: ["./keeper.ts"], deploy: { keeper: { slots: 1, config: { n: 0 } } } };`,
};

test("a worker that was frozen through three configs takes the last one and overwrites nothing", async () => {
  const place = PLACES.find(({ name }) => name === "Redis");
  if (place === undefined) throw new Error("there is no Redis to test on");
  const fleet = await healFleet(place, FILES);
  const worker = fleet.worker("one");
  await fleet.untilLine((line) => line["n"] === 0);
  const desired = async () => (await fleet.store.registry.view()).desired["keeper"];
  const before = (await desired())?.generation as number;
  await vi.waitFor(
    async () =>
      expect(await slotStatus(fleet.store, "keeper")).toMatchObject({ state: "running", generation: before }),
    { timeout: 10_000 },
  );

  const all = [worker.pid, ...descendants(worker.pid)];
  for (const pid of all) process.kill(pid, "SIGSTOP");
  for (const n of [1, 2, 3]) await patchConfig(fleet.store, "keeper", { patch: { n } }, { by: "jo" });
  const pushed = await desired();
  expect(pushed).toMatchObject({ generation: before + 3, config: { n: 3 } });
  // What it had reported last is past, and its lease over.
  await vi.waitFor(async () => expect(await slotStatus(fleet.store, "keeper")).toBeUndefined(), {
    timeout: 10_000,
  });
  const since = fleet.ledger().length;
  for (const pid of all) process.kill(pid, "SIGCONT");
  const thawed = Date.now();
  await vi.waitFor(
    async () =>
      expect(await slotStatus(fleet.store, "keeper")).toMatchObject({
        state: "running",
        generation: before + 3,
      }),
    { timeout: 20_000, interval: 50 },
  );
  measured("a worker that slept through three configs runs the last one after", ms(Date.now() - thawed));
  expect(await desired()).toEqual(pushed);
  // No run begins with what is past.
  const begun = fleet
    .ledger()
    .slice(since)
    .filter(({ what }) => what === "start");
  expect(begun.map((line) => line["n"])).toEqual([3]);
  worker.signal("SIGTERM");
  expect(await worker.ended).toBe(0);
}, 60_000);
