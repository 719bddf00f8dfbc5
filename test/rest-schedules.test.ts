// Short (`npm test`): schedules by REST on both stores, without a worker.
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineBatch } from "../src/index.ts";
import { PLACES } from "./support/places.ts";
import { publish, restOn, storeAt } from "./support/rest.ts";

const REPORTS = defineBatch("reports", {
  tasks: { payload: z.object({ of: z.string() }), maxAttempts: 7 },
  runOne: () => undefined,
});
const PATH = "/automations/reports/schedules";
const payload = { of: "all" };

describe.each(PLACES)("on $name", (place) => {
  const setUp = async () => {
    const { store } = await storeAt(place);
    await publish(store, [REPORTS]);
    return { store, rest: restOn(store) };
  };

  it("makes schedules, shows when each is due next, and changes the one of that id", async () => {
    const { store, rest } = await setUp();
    expect((await rest.call("GET", PATH)).json).toEqual({ items: [], next_cursor: null });
    const now = await store.now();
    const nightly = await rest.call("POST", PATH, {
      id: "nightly",
      cron: "0 3 * * *",
      timezone: "Europe/Berlin",
      payload,
      overlap: "skip",
      jitter_seconds: 2,
    });
    expect(nightly).toMatchObject({
      status: 201,
      json: {
        id: "nightly",
        queue: "reports",
        timing: { cron: "0 3 * * *", timezone: "Europe/Berlin" },
        payload,
        paused: false,
        overlap: "skip",
        missed: "once",
        origin: "runtime",
        last_tick: null,
      },
    });
    expect(nightly.json["next_at"]).toBeGreaterThan(now);
    expect(nightly.json["next_at"]).toBeLessThan(now + 26 * 3_600_000);
    await rest.client.putSchedule({ name: "reports", body: { id: "often", every_seconds: 90, payload } });
    const once = await rest.client.putSchedule({
      name: "reports",
      body: { id: "once", at: now + 60_000, payload },
    });
    expect(once).toMatchObject({ timing: { at: now + 60_000 }, next_at: now + 60_000 });

    const changed = await rest.client.putSchedule({
      name: "reports",
      body: { id: "often", every_seconds: 30, payload, max_attempts: 2 },
    });
    expect(changed.timing).toEqual({ every_seconds: 30 });
    const { schedules } = await store.queues.schedules({ queue: "reports" });
    const attempts = Object.fromEntries(schedules.map(({ spec }) => [spec.id, spec.task.maxAttempts]));
    expect(attempts).toEqual({ nightly: 7, often: 2, once: 7 });

    const first = await rest.client.listSchedules({ name: "reports", query: { limit: 2 } });
    expect(first.items.map(({ id }) => id)).toEqual(["nightly", "often"]);
    const rest2 = await rest.client.listSchedules({
      name: "reports",
      query: { limit: 2, cursor: first.next_cursor ?? "" },
    });
    expect(rest2).toMatchObject({ items: [{ id: "once" }], next_cursor: null });
  });

  it("refuses what is no schedule, and writes nothing", async () => {
    const { store, rest } = await setUp();
    for (const [body, status, words] of [
      [{ id: "a", payload }, 422, "exactly one of cron, every_seconds and at"],
      [{ id: "a", payload, cron: "0 3 * * *", every_seconds: 5 }, 422, "exactly one of"],
      [{ id: "a", payload, cron: "0 3 * *" }, 422, "is not a pattern"],
      [{ id: "a", payload, cron: "0 3 31 2 *" }, 422, "never comes"],
      [{ id: "a", payload, cron: "0 3 * * *", timezone: "Mars/Base" }, 422, "time zone"],
      [{ id: "a", payload, every_seconds: 5, timezone: "UTC" }, 422, "timezone goes with cron alone"],
      [{ id: "A b", payload, every_seconds: 5 }, 400, "not a valid name"],
      [{ id: "a", payload: { of: 1 }, every_seconds: 5 }, 422, "of"],
      [{ id: "a", every_seconds: 5 }, 422, "/payload"],
      [{ id: "a", payload, every_seconds: 0.01 }, 422, "every_seconds"],
    ] as const) {
      const answer = await rest.call("POST", PATH, body);
      expect({ body, status: answer.status }).toEqual({ body, status });
      expect(answer.json["detail"]).toContain(words);
    }
    const unfit = await rest.call("POST", PATH, { id: "a", payload: { of: 1 }, every_seconds: 5 });
    expect(unfit.json).toMatchObject({ code: "FLEET_PAYLOAD_INVALID", errors: [{ pointer: "/payload/of" }] });
    expect((await store.queues.schedules({ queue: "reports" })).schedules).toEqual([]);
  });

  it("runs one now, pauses, resumes and removes it", async () => {
    const { store, rest } = await setUp();
    await rest.client.putSchedule({ name: "reports", body: { id: "hourly", every_seconds: 3600, payload } });
    const run = await rest.call("POST", `${PATH}/hourly/run`);
    expect(run.status).toBe(201);
    const task = await rest.client.getTask({ name: "reports", id: String(run.json["task"]) });
    expect(task).toMatchObject({ state: "waiting", payload });

    const steer = (verb: string) => rest.call("POST", `${PATH}/hourly/${verb}`);
    expect((await steer("pause")).json).toEqual({ id: "hourly", paused: true, changed: true });
    expect((await steer("pause")).json).toEqual({ id: "hourly", paused: true, changed: false });
    expect((await rest.client.listSchedules({ name: "reports" })).items).toMatchObject([
      { id: "hourly", paused: true, next_at: null },
    ]);
    expect((await steer("resume")).json).toEqual({ id: "hourly", paused: false, changed: true });
    const removed = await rest.call("DELETE", `${PATH}/hourly`);
    expect(removed).toMatchObject({ status: 204, text: "" });
    expect((await store.queues.schedules({ queue: "reports" })).schedules).toEqual([]);
  });

  it("knows no schedule that is not there, and names the nearest", async () => {
    const { rest } = await setUp();
    expect(await rest.call("POST", `${PATH}/hourly/run`)).toMatchObject({ status: 404 });
    await rest.client.putSchedule({ name: "reports", body: { id: "hourly", every_seconds: 3600, payload } });
    for (const [method, path] of [
      ["POST", `${PATH}/hourli/run`],
      ["POST", `${PATH}/hourli/pause`],
      ["POST", `${PATH}/hourli/resume`],
      ["DELETE", `${PATH}/hourli`],
      ["GET", "/automations/report/schedules"],
    ] as const) {
      const answer = await rest.call(method, path);
      expect({ path, status: answer.status }).toEqual({ path, status: 404 });
      expect(answer.json["detail"]).toContain("did you mean");
    }
  });
});
