// Short (`npm test`): tasks by REST on both stores, without a worker.
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineBatch } from "../src/index.ts";
import { idOfRepeat } from "../src/master/repeats.ts";
import type { Store } from "../src/store/store.ts";
import { PLACES } from "./support/places.ts";
import { publish, restOn, storeAt } from "./support/rest.ts";

const SCRAPER = defineBatch("scraper", {
  tasks: {
    payload: z.object({ url: z.url(), depth: z.number().int().default(1) }),
    maxLength: 6,
    maxPayloadBytes: 200,
  },
  runOne: () => undefined,
});
const url = "https://example.com/";
const TASKS = "/automations/scraper/tasks";

describe.each(PLACES)("on $name", (place) => {
  const setUp = async () => {
    const { store, another } = await storeAt(place);
    await publish(store, [SCRAPER]);
    return { store, another, rest: restOn(store) };
  };
  const count = async (store: Store) =>
    (await store.queues.stats({ queue: "scraper" }))?.totals.submitted ?? 0;

  it("submits one task or several, and shows them with the payload as it was given", async () => {
    const { rest } = await setUp();
    const one = await rest.call("POST", TASKS, { payload: { url }, priority: 5, key: "k" });
    expect(one).toMatchObject({ status: 201, json: { validated: "structural" } });
    const [id] = one.json["ids"] as string[];
    expect(one.json["tasks"]).toEqual([{ id, outcome: "submitted" }]);
    const shown = await rest.call("GET", `${TASKS}/${id}`);
    expect(shown.json).toMatchObject({ id, queue: "scraper", state: "waiting", priority: 5, key: "k" });
    // Defaults are the consumer's: what travels is what was given.
    expect(shown.text).toContain(`"payload":{"url":"${url}"}`);

    const two = await rest.client.submitTasks({
      name: "scraper",
      body: { tasks: [{ payload: { url, depth: 2 } }, { payload: { url }, id: "mine" }] },
    });
    expect(two.ids).toEqual([expect.any(String), "mine"]);
  });

  it("writes nothing unless all payloads fit, and points at each field that does not", async () => {
    const { store, rest } = await setUp();
    const wrong = await rest.call("POST", TASKS, {
      tasks: [{ payload: { url } }, { payload: { url: 7 } }, { payload: { depth: 1.5 } }],
    });
    expect(wrong).toMatchObject({ status: 422, json: { code: "FLEET_PAYLOAD_INVALID" } });
    const pointers = (wrong.json["errors"] as { pointer: string }[]).map(({ pointer }) => pointer);
    expect(pointers).toEqual(["/tasks/1/payload/url", "/tasks/2/payload/url", "/tasks/2/payload/depth"]);
    const single = await rest.call("POST", TASKS, { payload: { url: "no" } });
    expect(single).toMatchObject({ status: 422, json: { errors: [{ pointer: "/payload/url" }] } });
    expect(single.headers.get("content-type")).toBe("application/problem+json");
    const large = await rest.call("POST", TASKS, { payload: { url: `${url}${"x".repeat(300)}` } });
    expect(large).toMatchObject({
      status: 413,
      json: { code: "FLEET_PAYLOAD_TOO_LARGE", errors: [{ pointer: "/payload" }] },
    });
    expect(await count(store)).toBe(0);
  });

  it("refuses options that are none or contradict each other, in the body's own words", async () => {
    const { store, rest } = await setUp();
    const unknown = await rest.call("POST", TASKS, { payload: { url }, prio: 1 });
    expect(unknown).toMatchObject({
      status: 422,
      json: { errors: [{ pointer: "/prio", message: "is not known" }] },
    });
    const inList = await rest.call("POST", TASKS, {
      tasks: [{}, {}, { payload: { url }, priority: "high" }],
    });
    expect((inList.json["errors"] as { pointer: string }[]).map(({ pointer }) => pointer)).toEqual([
      "/tasks/0/payload",
      "/tasks/1/payload",
      "/tasks/2/priority",
    ]);
    const both = await rest.call("POST", TASKS, {
      payload: { url },
      delay_seconds: 1,
      run_at: Date.now() + 1000,
    });
    expect(both.status).toBe(422);
    expect(both.json["detail"]).toContain("delay_seconds or run_at");
    const seconds = await rest.call("POST", TASKS, {
      payload: { url },
      run_at: Math.round(Date.now() / 1000),
    });
    expect(seconds.json["detail"]).toContain("multiply by 1000");
    expect(await count(store)).toBe(0);
  });

  it("answers 429 with Retry-After when the queue is full, and writes nothing of that list", async () => {
    const { store, rest } = await setUp();
    const seven = Array.from({ length: 7 }, () => ({ payload: { url } }));
    const full = await rest.call("POST", TASKS, { tasks: seven });
    expect(full).toMatchObject({ status: 429, json: { code: "FLEET_QUEUE_FULL", retryable: true } });
    expect(full.headers.get("retry-after")).toBe("1");
    expect(await count(store)).toBe(0);
  });

  it("knows no automation but batch automations, and names the nearest", async () => {
    const { rest } = await setUp();
    for (const [method, path, body] of [
      ["POST", "/automations/scrapper/tasks", { payload: { url } }],
      ["GET", "/automations/scrapper/tasks", undefined],
      ["GET", "/automations/scrapper/tasks/x", undefined],
      ["GET", "/automations/scrapper/tasks/x/result", undefined],
      ["POST", "/automations/scrapper/tasks/x/retry", undefined],
      ["POST", "/automations/scrapper/tasks/x/cancel", undefined],
    ] as const) {
      const answer = await rest.call(method, path, body);
      expect({ path, status: answer.status, code: answer.json["code"] }).toEqual({
        path,
        status: 404,
        code: "FLEET_NOT_FOUND",
      });
      expect(answer.json["detail"]).toContain('did you mean "scraper"?');
    }
  });

  it("pages through a state, each task once", async () => {
    const { rest } = await setUp();
    const { ids } = await rest.client.submitTasks({
      name: "scraper",
      body: { tasks: Array.from({ length: 5 }, () => ({ payload: { url } })) },
    });
    const seen: string[] = [];
    let cursor: string | null | undefined;
    do {
      const page = await rest.client.listTasks({
        name: "scraper",
        query: { limit: 2, ...(cursor === undefined || cursor === null ? {} : { cursor }) },
      });
      expect(page.items.length).toBeLessThanOrEqual(2);
      seen.push(...page.items.map(({ id }) => id));
      cursor = page.next_cursor;
    } while (cursor !== null);
    expect(seen.toSorted()).toEqual(ids.toSorted());
    const none = await rest.client.listTasks({ name: "scraper", query: { state: "failed" } });
    expect(none).toEqual({ items: [], next_cursor: null });
    expect(await rest.call("GET", `${TASKS}?cursor=nonsense`)).toMatchObject({
      status: 400,
      json: { code: "FLEET_REQUEST_INVALID" },
    });
    expect(await rest.call("GET", `${TASKS}?limit=501`)).toMatchObject({ status: 400 });
    expect(await rest.call("GET", `${TASKS}?state=lost`)).toMatchObject({ status: 400 });
  });

  it("waits for a result, and is told of it at once", async () => {
    const { store, rest } = await setUp();
    const { ids } = await rest.client.submitTasks({ name: "scraper", body: { payload: { url } } });
    const [id = ""] = ids;
    const early = await rest.client.taskResult({ name: "scraper", id });
    expect(early).toEqual({ id, done: false, state: "waiting", result: null, reason: null, error: null });

    const waiting = rest.client.taskResult({ name: "scraper", id, query: { wait_seconds: 60 } });
    const started = performance.now();
    const turn = { queue: "scraper", holder: "h", worker: "w", leaseMs: 5000 };
    const { tasks } = await store.queues.turn({ ...turn, settle: [], claim: 1 });
    const token = tasks[0]?.token ?? "";
    const settle = [{ id, token, outcome: "completed" as const, result: '{"big":12345678901234567890}' }];
    await store.queues.turn({ ...turn, settle, claim: 0 });
    expect((await waiting).done).toBe(true);
    expect(performance.now() - started).toBeLessThan(20_000);
    const { text } = await rest.call("GET", `${TASKS}/${id}/result`);
    // Byte for byte: no number is read and written again.
    expect(text).toContain('"result":{"big":12345678901234567890}');
    expect(await rest.call("GET", `${TASKS}/nobody/result?wait_seconds=5`)).toMatchObject({
      status: 404,
      json: { code: "FLEET_TASK_UNKNOWN" },
    });
  });

  it("ends a long poll when the caller goes, and when the master does", async () => {
    const { rest } = await setUp();
    const { ids } = await rest.client.submitTasks({ name: "scraper", body: { payload: { url } } });
    const gone = new AbortController();
    const path = `${TASKS}/${ids[0]}/result?wait_seconds=60`;
    const left = rest.call("GET", path, undefined, { signal: gone.signal });
    const stays = rest.call("GET", path);
    await delay(200);
    gone.abort();
    expect((await left).json).toMatchObject({ done: false });
    let ended = false;
    void stays.finally(() => (ended = true));
    await delay(100);
    expect(ended).toBe(false);
    await rest.stop();
    expect((await stays).json).toMatchObject({ done: false });
  });

  it("retries and cancels, and says what stands against it", async () => {
    const { store, rest } = await setUp();
    await rest.client.submitTasks({ name: "scraper", body: { payload: { url }, id: "a" } });
    const steer = (id: string, verb: string) => rest.call("POST", `${TASKS}/${id}/${verb}`);
    expect(await steer("a", "retry")).toMatchObject({ status: 409, json: { code: "FLEET_CONFLICT" } });
    expect(await steer("a", "cancel")).toMatchObject({
      status: 200,
      json: { id: "a", outcome: "cancelled" },
    });
    expect(await steer("a", "cancel")).toMatchObject({ status: 200 });
    expect(await steer("a", "retry")).toMatchObject({ status: 200, json: { id: "a", outcome: "waiting" } });
    const turn = { queue: "scraper", holder: "h", worker: "w", leaseMs: 5000 };
    const { tasks } = await store.queues.turn({ ...turn, settle: [], claim: 1 });
    expect(await steer("a", "cancel")).toMatchObject({ status: 200, json: { outcome: "cancelling" } });
    const settle = [{ id: "a", token: tasks[0]?.token ?? "", outcome: "completed" as const, result: null }];
    await store.queues.turn({ ...turn, settle, claim: 0 });
    for (const verb of ["cancel", "retry"]) expect(await steer("a", verb)).toMatchObject({ status: 409 });
    for (const verb of ["cancel", "retry"])
      expect(await steer("b", verb)).toMatchObject({ status: 404, json: { code: "FLEET_TASK_UNKNOWN" } });
  });

  describe("with Idempotency-Key", () => {
    const twice = { tasks: [{ payload: { url } }, { payload: { url, depth: 2 } }] };
    const keyed = (key: string) => ({ headers: { "idempotency-key": key } });

    it("finds the tasks of the first submission, also by another master", async () => {
      const { store, another, rest } = await setUp();
      const first = await rest.call("POST", TASKS, twice, keyed("k1"));
      const again = await restOn(await another()).call("POST", TASKS, twice, keyed("k1"));
      expect(again).toMatchObject({ status: 201, json: { ids: first.json["ids"] } });
      expect(first.json["ids"]).toEqual([idOfRepeat("scraper", "k1", 0), idOfRepeat("scraper", "k1", 1)]);
      expect((again.json["tasks"] as { outcome: string }[]).map(({ outcome }) => outcome)).toEqual([
        "repeated",
        "repeated",
      ]);
      expect(await count(store)).toBe(2);
      await rest.call("POST", TASKS, twice, keyed("k2"));
      expect(await count(store)).toBe(4);
    });

    it("refuses another body with 409, and writes nothing of it", async () => {
      const { store, rest } = await setUp();
      await rest.call("POST", TASKS, twice, keyed("k"));
      for (const other of [
        { payload: { url } },
        { tasks: [...twice.tasks, { payload: { url } }] },
        { tasks: twice.tasks.toReversed() },
        { tasks: twice.tasks.map((task) => ({ ...task, priority: 1 })) },
        { tasks: twice.tasks.map((task) => ({ ...task, key: "x" })) },
        { tasks: twice.tasks.map((task) => ({ ...task, delay_seconds: 60 })) },
        { tasks: twice.tasks.map((task) => ({ ...task, run_at: 2_000_000_000_000 })) },
        { tasks: twice.tasks.map((task) => ({ ...task, timeout_seconds: 7 })) },
        { tasks: twice.tasks.map((task) => ({ ...task, ttl_seconds: 7 })) },
        { tasks: twice.tasks.map((task) => ({ ...task, max_attempts: 7 })) },
      ]) {
        const answer = await rest.call("POST", TASKS, other, keyed("k"));
        expect(answer).toMatchObject({ status: 409, json: { code: "FLEET_CONFLICT" } });
      }
      expect(await count(store)).toBe(2);
    });

    it("submits again what was a duplicate and left no task, beside what is there", async () => {
      const { store, rest } = await setUp();
      const borne = await rest.call("POST", TASKS, { payload: { url }, dedupe_key: "d" });
      const [bearer] = borne.json["ids"] as string[];
      const body = { tasks: [{ payload: { url }, dedupe_key: "d" }, { payload: { url, depth: 2 } }] };
      const first = await rest.call("POST", TASKS, body, keyed("k"));
      const mine = idOfRepeat("scraper", "k", 1);
      expect(first.json["tasks"]).toEqual([
        { id: bearer, outcome: "ignored" },
        { id: mine, outcome: "submitted" },
      ]);
      // As if that answer had been lost.
      const again = await rest.call("POST", TASKS, body, keyed("k"));
      expect(again).toMatchObject({ status: 201, json: { ids: [bearer, mine] } });
      expect(again.json["tasks"]).toEqual([
        { id: bearer, outcome: "ignored" },
        { id: mine, outcome: "repeated" },
      ]);
      expect(await count(store)).toBe(2);
      // Another body is one still, also in the part that has left no task: without a dedupe_key it must be there.
      for (const [a, b] of [
        [{ payload: { url }, dedupe_key: "d" }, { payload: { url, depth: 3 } }],
        [{ payload: { url } }, { payload: { url, depth: 2 } }],
        [{ payload: { url }, dedupe_key: "d" }],
      ])
        expect(
          await rest.call("POST", TASKS, { tasks: b === undefined ? [a] : [a, b] }, keyed("k")),
        ).toMatchObject({ status: 409, json: { code: "FLEET_CONFLICT" } });
      expect(await count(store)).toBe(2);
      // Where nobody bears the key any more, it becomes a task: under the id that it would have had.
      await rest.call("POST", `${TASKS}/${bearer}/cancel`);
      const later = await rest.call("POST", TASKS, body, keyed("k"));
      expect(later.json["tasks"]).toEqual([
        { id: idOfRepeat("scraper", "k", 0), outcome: "submitted" },
        { id: mine, outcome: "repeated" },
      ]);
      expect((await rest.call("POST", TASKS, body, keyed("k"))).json["tasks"]).toEqual([
        { id: idOfRepeat("scraper", "k", 0), outcome: "repeated" },
        { id: mine, outcome: "repeated" },
      ]);
    });

    it("lets of many that come together one be the first", async () => {
      const { store, another, rest } = await setUp();
      const other = restOn(await another());
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, at) =>
          (at % 2 === 0 ? rest : other).call("POST", TASKS, twice, keyed("k")),
        ),
      );
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
      expect(new Set(answers.map(({ json }) => JSON.stringify(json["ids"]))).size).toBe(1);
      expect(await count(store)).toBe(2);
    });

    it("refuses ids beside it, and keys that are none", async () => {
      const { rest } = await setUp();
      expect(await rest.call("POST", TASKS, { payload: { url }, id: "a" }, keyed("k"))).toMatchObject({
        status: 422,
        json: { errors: [{ pointer: "/id" }] },
      });
      for (const key of ["", "x".repeat(129)])
        expect(await rest.call("POST", TASKS, { payload: { url } }, keyed(key))).toMatchObject({
          status: 400,
        });
    });
  });
});
