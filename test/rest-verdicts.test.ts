// who accepts tasks or items by REST or by command asks a live child what a JSON Schema cannot say. In both runtimes. `npm test`: on
// SQLite; `npm run soak`: on both stores.
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { defineBatch, defineContinuous, definePool } from "../src/index.ts";
import { ANSWER_PREFIX, ASK_PREFIX, MAX_EVENT_BYTES } from "../src/protocol/event.ts";
import type { Store } from "../src/store/store.ts";
import { inlineWorker, KINDS } from "./support/batch-worker.ts";
import { makeProject, runFleet, type RunningFleet, startFleet } from "./support/cli.ts";
import { openPlace, placesFor, runningSlots } from "./support/places.ts";
import { type Rest, restOn } from "./support/rest.ts";

vi.setConfig({ testTimeout: 90_000 });

const TASKS = "/automations/ranges/tasks";
const fits = { from: 1, to: 2 };
/** Right by its JSON Schema; only its refinement refuses it. */
const unfit = { from: 2, to: 1 };

const Range = z
  .object({ from: z.number(), to: z.number(), pad: z.string().optional() })
  .refine(({ from, to }) => from < to, { path: ["to"], message: "must be above from" });

const RANGES = `
  import { defineBatch, definePool } from "fleet-framework";
  import { z } from "zod";
  const Range = z
    .object({ from: z.number(), to: z.number(), busy: z.number().optional() })
    .refine(({ from, to }) => from < to, { path: ["to"], message: "must be above from" });
  export default defineBatch("ranges", {
    tasks: { payload: Range },
    uses: { put: [definePool("spans", { payload: Range })] },
    async runOne({ payload: { busy = 0 } }) {
      for (const end = Date.now() + busy * 1000; Date.now() < end;);
    },
  });
`;

const submitted = async (store: Store) =>
  (await store.queues.stats({ queue: "ranges" }))?.totals.submitted ?? 0;

const untilRunning = (store: Store, count: number) =>
  vi.waitFor(async () => expect((await runningSlots(store)).size).toBe(count), {
    timeout: 60_000,
    interval: 50,
  });

async function expectFull(rest: Rest, store: Store): Promise<void> {
  const before = await submitted(store);
  const refused = await rest.call("POST", TASKS, { tasks: [{ payload: fits }, { payload: unfit }] });
  expect(refused).toMatchObject({
    status: 422,
    json: {
      code: "FLEET_PAYLOAD_INVALID",
      errors: [{ pointer: "/tasks/1/payload/to", message: "must be above from" }],
    },
  });
  expect(await submitted(store)).toBe(before);
  const taken = await rest.call("POST", TASKS, { payload: fits });
  expect(taken).toMatchObject({ status: 201, json: { validated: "full" } });
  const scheduled = await rest.call("POST", "/automations/ranges/schedules", {
    id: "s",
    every_seconds: 3600,
    payload: unfit,
  });
  expect(scheduled).toMatchObject({ status: 422, json: { errors: [{ pointer: "/payload/to" }] } });
}

describe.each(KINDS)("inline, on %s", (kind) => {
  const start = async (payload: z.ZodType = Range) => {
    const automation = defineBatch("ranges", { tasks: { payload }, runOne: () => undefined });
    const { store, worker } = await inlineWorker(kind, [[automation, 1]]);
    await untilRunning(store, 1);
    return { store, worker, rest: restOn(store) };
  };

  it("refuses what the automation's own schema refuses, until its worker has gone", async () => {
    const { store, worker, rest } = await start();
    await expectFull(rest, store);
    await worker.drain({ deadlineSeconds: 1 });
    const later = await rest.call("POST", TASKS, { payload: unfit });
    expect(later).toMatchObject({ status: 201, json: { validated: "structural" } });
  });

  it("asks about items of a pool whoever declares it, also an automation without tasks", async () => {
    const tags = z.object({ site: z.string() }).refine(({ site }) => site !== "none", { path: ["site"] });
    const spans = definePool("spans", { payload: Range, tags });
    const user = defineContinuous("user", {
      uses: { claim: [spans] },
      runSlot: (ctx) => ctx.sleep(3600),
    });
    const { store, worker } = await inlineWorker(kind, [[user, 1]]);
    await untilRunning(store, 1);
    const rest = restOn(store);
    const put = (payload: object, site: string) =>
      rest.call("POST", "/pools/spans/items", { payload, tags: { site } });
    expect(await put(unfit, "none")).toMatchObject({
      status: 422,
      json: {
        errors: [{ pointer: "/payload/to", message: "must be above from" }, { pointer: "/tags/site" }],
      },
    });
    expect(await store.pools.list()).toEqual([]);
    expect(await put(fits, "a")).toMatchObject({ status: 201, json: { validated: "full" } });
    await worker.drain({ deadlineSeconds: 1 });
    expect(await put(unfit, "none")).toMatchObject({ status: 201, json: { validated: "structural" } });
  });

  it("asks about many at once, and not about what is too large", async () => {
    const { rest } = await start();
    const pad = "ü".repeat(2000);
    const many = Array.from({ length: 60 }, (_, at) => ({
      payload: { from: at, to: at === 47 ? at : at + 1, pad },
    }));
    const refused = await rest.call("POST", TASKS, { tasks: many });
    expect(refused).toMatchObject({ status: 422, json: { errors: [{ pointer: "/tasks/47/payload/to" }] } });
    const good = many.map(({ payload }) => ({ payload: { ...payload, to: payload.from + 1 } }));
    expect((await rest.call("POST", TASKS, { tasks: good })).json).toMatchObject({ validated: "full" });
    const large = { payload: { ...fits, pad: "x".repeat(60_000) } };
    expect((await rest.call("POST", TASKS, large)).json).toMatchObject({ validated: "structural" });
  });

  it("takes what a schema throws for a refusal", async () => {
    const odd = z.object({ n: z.number() }).refine(({ n }) => {
      if (n === 1) throw new Error("no such number");
      return true;
    });
    const { rest } = await start(odd);
    const verdict = (n: number) => rest.call("POST", TASKS, { payload: { n } });
    expect(await verdict(1)).toMatchObject({
      status: 422,
      json: { errors: [{ message: "no such number" }] },
    });
    expect(await verdict(2)).toMatchObject({ status: 201, json: { validated: "full" } });
  });

  it("waits for a schema that is slow, and lists only so many issues", async () => {
    const odd = z.object({ n: z.number() }).superRefine(async ({ n }, ctx) => {
      if (n === -1) throw new Error("no such number");
      await new Promise((resolve) => setTimeout(resolve, 50));
      for (let at = 0; at < n; at++) ctx.addIssue({ code: "custom", message: `${at} ${"ü".repeat(500)}` });
    });
    const { store, rest } = await start(odd);
    const sizes: number[] = [];
    const ear = store.events.subscribe({ pattern: `${ANSWER_PREFIX}*` }, ({ payload }) => {
      sizes.push(Buffer.byteLength(JSON.stringify(payload)));
    });
    onTestFinished(() => ear.close());
    await ear.ready;
    const verdict = (n: number) => rest.call("POST", TASKS, { payload: { n } });
    expect(await verdict(0)).toMatchObject({ status: 201, json: { validated: "full" } });
    // Whatever it throws ends no process: a rejection that nobody handles would fail this test's run.
    expect(await verdict(-1)).toMatchObject({
      status: 422,
      json: { errors: [{ message: "no such number" }] },
    });
    const { status, json } = await verdict(1000);
    expect(status).toBe(422);
    const issues = json["errors"] as { pointer: string; message: string }[];
    expect(issues.length).toBeGreaterThan(10);
    expect(issues.length).toBeLessThanOrEqual(100);
    // An event of any size would travel; what an event may hold is said of all of them.
    await vi.waitFor(() => expect(Math.max(...sizes)).toBeGreaterThan(30_000));
    expect(Math.max(...sizes)).toBeLessThan(MAX_EVENT_BYTES);
    expect(issues[0]).toMatchObject({
      pointer: "/payload",
      message: expect.stringMatching(/^0 ü{300,400}$/) as string,
    });
  });
});

describe.each(placesFor("a SQLite file"))("in processes of their own, on $name", ({ at }) => {
  const start = async () => {
    const dir = makeProject({
      "ranges.ts": RANGES,
      "fleet.config.ts": `export default { automations: ["./ranges.ts"], deploy: { ranges: { slots: 1 } } };`,
    });
    const place = at(dir);
    const store = await openPlace(place);
    onTestFinished(() => store.close());
    const worker = (): RunningFleet => startFleet(["worker", ...place.flags], { cwd: dir });
    const command = (...args: string[]) => runFleet([...args, ...place.flags], { cwd: dir });
    return { store, worker, command, rest: restOn(store) };
  };

  it("refuses what the automation's own schema refuses, and does not wait for a child that is busy", async () => {
    const { store, worker, command, rest } = await start();
    const first = worker();
    await untilRunning(store, 1);
    await expectFull(rest, store);

    const [good, bad] = [JSON.stringify(fits), JSON.stringify(unfit)];
    for (const [args, what] of [
      [["task", "submit", "ranges"], 'queue "ranges": payload 1: to'],
      [["pool", "put", "spans"], 'pool "spans": item 1: payload.to'],
    ] as const) {
      const refused = await command(...args, good, bad);
      expect(refused).toEqual({ code: 2, stdout: "", stderr: `fleet: ${what}: must be above from\n` });
      const taken = await command(...args, good, "--json");
      expect(JSON.parse(taken.stdout)).toMatchObject({ validated: "full" });
      const unchecked = await command(...args, bad, "--unchecked", "--json");
      expect(JSON.parse(unchecked.stdout)).toMatchObject({ validated: null });
    }

    const questions: string[] = [];
    for (const pattern of [`${ASK_PREFIX}*`, `${ANSWER_PREFIX}*`]) {
      const ear = store.events.subscribe({ pattern }, ({ topic }) => void questions.push(topic));
      onTestFinished(() => ear.close());
      await ear.ready;
    }
    const busy = await rest.call("POST", TASKS, { payload: { ...fits, busy: 4 } });
    const [id = ""] = busy.json["ids"] as string[];
    await vi.waitFor(
      async () => expect((await store.queues.get({ queue: "ranges", id }))?.state).toBe("active"),
      {
        interval: 20,
      },
    );
    questions.length = 0;
    const [before] = (await store.registry.view()).workers;
    const started = performance.now();
    const taken = await rest.call("POST", TASKS, { payload: unfit });
    expect(taken).toMatchObject({ status: 201, json: { validated: "structural" } });
    expect(performance.now() - started).toBeLessThan(3500);
    expect(questions.filter((topic) => topic.startsWith(ASK_PREFIX))).toHaveLength(1);
    // Its child still runs that task, and the supervisor has gone on meanwhile.
    expect((await store.queues.get({ queue: "ranges", id }))?.state).toBe("active");
    await vi.waitFor(async () => {
      const [after] = (await store.registry.view()).workers;
      expect(after?.lastSeenAt).toBeGreaterThan(before?.lastSeenAt ?? Number.POSITIVE_INFINITY);
    });

    // The take decides.
    const [late = ""] = taken.json["ids"] as string[];
    const result = await rest.client.taskResult({ name: "ranges", id: late, query: { wait_seconds: 60 } });
    expect(result).toMatchObject({ done: true, state: "failed", reason: "invalid" });
    expect(result.error).toContain("must be above from");
    first.signal("SIGTERM");
    await first.ended;
  });

  it("asks another worker where the child of the first is busy", async () => {
    const { store, worker, rest } = await start();
    worker();
    worker();
    await untilRunning(store, 1);
    await rest.client.setSlots({ name: "ranges", body: { count: 2 } });
    await untilRunning(store, 2);
    const workers = new Set([...(await runningSlots(store)).values()].flat());
    expect(workers.size).toBe(2);
    const busy = await rest.call("POST", TASKS, { payload: { ...fits, busy: 6 } });
    const [id = ""] = busy.json["ids"] as string[];
    await vi.waitFor(async () =>
      expect((await store.queues.get({ queue: "ranges", id }))?.state).toBe("active"),
    );
    // Whichever of the two is asked first.
    for (let round = 0; round < 2; round++)
      expect(await rest.call("POST", TASKS, { payload: unfit })).toMatchObject({ status: 422 });
    expect((await store.queues.get({ queue: "ranges", id }))?.state).toBe("active");
  });
});
