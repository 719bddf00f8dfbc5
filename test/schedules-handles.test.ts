// Short (`npm test`): schedules as users make them: with a definition, by a handle, on the command line; fired by a real worker, on both stores.
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { fleetOn } from "../src/automation/fleet.ts";
import { defineQueue } from "../src/contracts/queue.ts";
import { SILENT } from "../src/internal/log.ts";
import { makeProject, runFleet, startFleet } from "./support/cli.ts";
import { openPlace, placesFor } from "./support/places.ts";

const QUEUE = defineQueue("reports", { payload: z.object({ kind: z.string() }) });

const project = (schedules: string) => ({
  "reports.ts": `
    import { defineBatch } from "fleet-framework";
    import { z } from "zod";
    export default defineBatch("reports", {
      tasks: { payload: z.object({ kind: z.string() }) },
      schedules: ${schedules},
      async runOne(task) { return { kind: task.payload.kind, tick: task.tick }; },
    });`,
  "fleet.config.ts": `
    import { defineConfig } from "fleet-framework";
    export default defineConfig({ automations: ["./reports.ts"], deploy: { reports: { slots: 1 } } });`,
});

describe.each(placesFor("Redis"))("on $name", (place) => {
  test("declared, made at run time, steered, and gone with their definition", async () => {
    const dir = makeProject(project(`{ often: { everySeconds: 1, payload: { kind: "often" } } }`));
    const at = place.at(dir);
    const store = await openPlace(at);
    await using fleet = fleetOn(store, { log: SILENT });
    const json = async (...args: string[]) =>
      JSON.parse(
        (await runFleet(["schedule", ...args, "--json", ...at.flags], { cwd: dir })).stdout,
      ) as unknown;
    const results = async (kind: string) => {
      const { tasks } = await store.queues.page({ queue: "reports", state: "completed", n: 100 });
      return tasks
        .map(
          ({ result }) =>
            JSON.parse(result ?? "null") as { kind: string; tick: { schedule: string; at: number } | null },
        )
        .filter((result) => result.kind === kind);
    };

    const worker = startFleet(["worker", "--id", "one", ...at.flags], { cwd: dir });
    await vi.waitFor(async () => expect((await results("often")).length).toBeGreaterThanOrEqual(3), 30_000);
    const ticks = (await results("often")).map(({ tick }) => tick?.at ?? 0);
    expect(new Set(ticks).size).toBe(ticks.length);
    expect(ticks.filter((tick) => tick % 1000 !== 0)).toEqual([]);

    // By a handle, while the worker runs: seen within a few seconds.
    await fleet.queue(QUEUE).schedule("soon", { at: Date.now() + 500, payload: { kind: "soon" } });
    await vi.waitFor(async () => expect(await results("soon")).toHaveLength(1), 20_000);
    expect((await results("soon"))[0]?.tick?.schedule).toBe("soon");

    expect(await json("pause", "reports", "often")).toMatchObject({ paused: true, changed: true });
    expect(await json("ls", "reports")).toMatchObject([
      { id: "often", paused: true, next_at: null, origin: "definition" },
    ]);
    const { task } = (await json("run", "reports", "often")) as { task: string };
    expect(await fleet.queue(QUEUE).result(task, { waitSeconds: 20 })).toEqual({ kind: "often", tick: null });

    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
    const unknown = await runFleet(["schedule", "run", "reports", "oftem", ...at.flags], { cwd: dir });
    expect(unknown).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('did you mean "often"?') as string,
    });

    // The next definition has another one, and that alone; what was made at run time stays.
    await fleet.queue(QUEUE).schedule("own", { everySeconds: 3600, payload: { kind: "own" } });
    const dir2 = makeProject(
      project(`{ daily: { cron: "0 3 * * *", timezone: "Europe/Berlin", payload: { kind: "daily" } } }`),
    );
    const next = startFleet(["worker", "--id", "one", ...at.flags], { cwd: dir2 });
    await vi.waitFor(
      async () =>
        expect(
          ((await json("ls")) as { id: string; when: string }[])
            .map(({ id, when }) => `${id}: ${when}`)
            .toSorted((a, b) => (a < b ? -1 : 1)),
        ).toEqual(["daily: 0 3 * * * (Europe/Berlin)", "own: every 1 h 0 m"]),
      20_000,
    );
    expect(await fleet.queue(QUEUE).unschedule("own")).toBe("removed");
    expect(await fleet.queue(QUEUE).unschedule("own")).toBe("unknown");
    next.signal("SIGTERM");
    await next.ended;
  }, 90_000);
});
