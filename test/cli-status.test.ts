// Short (`npm test`): `fleet status` tells no lies about a worker that is dead or frozen, on both stores.
import { describe, expect, test, vi } from "vitest";
import { automationLine, type StatusReport } from "../src/control/status-report.ts";
import { makeProject, runFleet, startFleet } from "./support/cli.ts";
import { openPlace, placesFor } from "./support/places.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 60_000 });

const LEASE_MS = 4000;
const env = { FLEET_TIMINGS: JSON.stringify({ beatMs: 200, leaseMs: LEASE_MS }) };
const STEADY = `
import { defineContinuous } from "fleet-framework";
export default defineContinuous("steady", {
  async runSlot(ctx) {
    for await (const _ of ctx.loop({ everySeconds: 0.1 }));
  },
});`;

describe.each(placesFor("a SQLite file"))("on $name", ({ at }) => {
  test("slots of a killed worker are not shown as running: silent first, then waiting, with the reason", async () => {
    const cwd = makeProject({ "steady.ts": STEADY });
    const place = at(cwd);
    const store = await openPlace(place);
    const worker = startFleet(["worker", "steady.ts", "--id", "one", ...place.flags], { cwd, env });
    const look = async () => automationLine("steady", await store.registry.view());
    await vi.waitFor(async () => expect((await look()).running).toBe(1), { timeout: 20_000, interval: 100 });
    // Told by its process: turns go on, and it waits between them.
    await vi.waitFor(
      async () => {
        const [slot] = (await look()).slot_list;
        expect(slot).toMatchObject({ state: "running", waiting: true, reason: null });
        expect(slot?.iterations).toBeGreaterThan(3);
        expect(slot?.memory_mb).toBeGreaterThan(20);
      },
      { timeout: 20_000, interval: 100 },
    );
    const wide = await runFleet(["status", "--wide", ...place.flags], { cwd });
    expect(wide).toMatchObject({ code: 0, stderr: "" });
    expect(wide.stdout).toMatch(/^ +0 {2}running .* one .* waits .* MB .* % .* ms/m);

    worker.signal("SIGKILL");
    await worker.ended;
    const killed = performance.now();
    const seen = new Set<string>();
    const lies: number[] = [];
    await vi.waitFor(
      async () => {
        const { running, slot_list } = await look();
        seen.add(slot_list[0]?.state ?? "none");
        const deadFor = performance.now() - killed;
        if (deadFor > LEASE_MS / 2 && running > 0) lies.push(deadFor);
        expect(slot_list[0]).toMatchObject({
          state: "waiting",
          worker: null,
          reason: "worker one is offline; no worker is online",
        });
      },
      { timeout: 20_000, interval: 50 },
    );
    expect(performance.now() - killed).toBeLessThan(LEASE_MS + 2000);
    expect(lies).toEqual([]);
    expect([...seen].filter((state) => state !== "running")).toEqual(["silent", "waiting"]);
    const { stdout } = await runFleet(["status", "--json", ...place.flags], { cwd });
    expect(JSON.parse(stdout) as StatusReport).toMatchObject({
      workers: [{ id: "one", state: "offline", deaf: null }],
      automations: [{ running: 0, slot_list: [{ state: "waiting", pid: null }] }],
    });
    await store.close();
  });
});
