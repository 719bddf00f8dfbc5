// `fleet task` and `fleet explain`: without any worker, and with one that runs the tasks. `npm test`: on Redis; `npm run soak`: on
// both stores.
import { randomUUID } from "node:crypto";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { defineQueue } from "../src/contracts/queue.ts";
import { defineBatch } from "../src/index.ts";
import { isAutomation } from "../src/automation/definition.ts";
import { manifestOf } from "../src/automation/manifest.ts";
import { SILENT } from "../src/internal/log.ts";
import { Queues } from "../src/primitives/queues.ts";
import type { Store } from "../src/store/store.ts";
import { makeProject, runFleet, startFleet } from "./support/cli.ts";
import { openPlace, type Place, PLACES, placesFor } from "./support/places.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 90_000 });

const Page = z.object({ url: z.url(), depth: z.number().int().default(1) });
const url = "https://example.com/";
const payload = JSON.stringify({ url });

const SCRAPER = `
import { defineBatch, FatalError } from "fleet-framework";
import { z } from "zod";
export default defineBatch("scraper", {
  tasks: { payload: z.object({ url: z.url() }), result: z.object({ host: z.string() }), timeoutSeconds: 60 },
  async runOne(task, ctx) {
    const { pathname, host } = new URL(task.payload.url);
    if (pathname === "/gone") throw new FatalError("no such page");
    if (pathname === "/slow") await ctx.sleep(50);
    ctx.signal.throwIfAborted();
    return { host };
  },
});`;

/** What a worker that runs "scraper" would have published, and that it is alive. */
async function publish(store: Store): Promise<void> {
  const automation: unknown = defineBatch("scraper", {
    tasks: { payload: Page, maxAttempts: 3, maxLength: 6 },
    runOne: () => undefined,
  });
  if (!isAutomation(automation)) throw new Error("no automation");
  const worker = {
    id: "w1",
    incarnation: randomUUID(),
    host: "h",
    pid: 1,
    version: "0",
    startedAt: Date.now(),
    capacity: 1,
    labels: {},
    automations: ["scraper"],
    draining: false,
  };
  await store.registry.register({ worker, manifests: [manifestOf(automation, "v1")], ttlMs: 600_000 });
}

/** A folder, a store, and ways to run commands on it. */
const setUpAt = async ({ at }: Place, files: Record<string, string> = {}) => {
  const cwd = makeProject(files);
  const place = at(cwd);
  const store = await openPlace(place);
  onTestFinished(() => store.close());
  const fleet = (...args: string[]) => runFleet([...args, ...place.flags], { cwd });
  const good = async (...args: string[]) => {
    const { code, stdout, stderr } = await fleet(...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return stdout;
  };
  const ids = async (...args: string[]) =>
    (await good("task", "submit", "scraper", ...args)).trim().split("\n");
  const json = async <T>(...args: string[]) => JSON.parse(await good(...args, "--json")) as T;
  const stats = () => store.queues.stats({ queue: "scraper" });
  return { cwd, place, store, fleet, ids, json, stats };
};

// What is the same on each store is looked at on one.
describe("on one store", () => {
  const setUp = () => setUpAt(PLACES[0] as Place);

  test("a payload is checked against what the workers have published; what does not fit is not submitted", async () => {
    const { store, fleet, stats } = await setUp();
    await publish(store);
    const wrong = await fleet("task", "submit", "scraper", '{"url": 1}');
    expect(wrong).toMatchObject({ code: 2, stdout: "" });
    expect(wrong.stderr).toBe('fleet: queue "scraper": payload 0: url: must be string\n');
    const many = await fleet("task", "submit", "scraper", payload, '{"url":"no url","depth":1.5}', "--json");
    expect(many.code).toBe(2);
    expect(JSON.parse(many.stderr)).toEqual({
      code: "FLEET_PAYLOAD_INVALID",
      message: 'queue "scraper": payload 1: url: must match format "uri"; depth: must be integer',
    });
    const refusals: [string[], string][] = [
      [["scraper", "{url: 1}"], "the payload is not JSON"],
      [
        ["scraper", payload, "--max-attempts", "Infinity"],
        "maxAttempts must be a whole number, got Infinity",
      ],
      [["scraper", payload, "--max-attempts", "1.5"], "maxAttempts must be a whole number, got 1.5"],
      [["scraper", payload, "--delay", "1h", "--at", "2030-01-01"], "give delaySeconds or runAt, not both"],
      [["scraper", payload, "--delay", "soon"], "length of time"],
      [["scraper", payload, "--at", "tomorrow"], "It must be a time"],
      [["scraper", payload, "--on-duplicate", "drop"], "Allowed choices are ignore, replace"],
      [["scraper", payload, "--dedupe-key", "d", "--on-duplicate", "throttle"], "needs dedupeSeconds"],
    ];
    const answers = await Promise.all(refusals.map(([args]) => fleet("task", "submit", ...args)));
    for (const [index, answer] of answers.entries()) {
      expect(answer).toMatchObject({ code: 2, stdout: "" });
      expect(answer.stderr).toContain(refusals[index]?.[1]);
    }
    const unknown = await fleet("task", "submit", "scrapper", payload);
    expect(unknown).toEqual({
      code: 1,
      stdout: "",
      stderr: 'fleet: there is no queue "scrapper"; did you mean "scraper"?\n',
    });
    // Nothing of all this has come so far as to make the queue known.
    expect(await stats()).toBeUndefined();
  });

  test("every option of a submission arrives; a full queue says so", async () => {
    const { store, fleet, ids, stats } = await setUp();
    await publish(store);
    const [id = ""] = await ids(
      payload,
      "--delay",
      "2h",
      "--priority",
      "-7",
      "--key",
      "example.com",
      "--dedupe-key",
      "d",
      "--max-attempts",
      "1",
      "--timeout",
      "90s",
      "--ttl",
      "10m",
      "--id",
      "mine",
    );
    expect(id).toBe("mine");
    const task = await store.queues.get({ queue: "scraper", id });
    expect(task).toMatchObject({
      state: "scheduled",
      payload,
      priority: -7,
      key: "example.com",
      dedupeKey: "d",
      maxAttempts: 1,
      timeoutMs: 90_000,
    });
    expect((task?.dueAt ?? 0) - (task?.submittedAt ?? 0)).toBe(7_200_000);
    expect((task?.expiresAt ?? 0) - (task?.dueAt ?? 0)).toBe(600_000);
    expect(await ids(payload, "--dedupe-key", "d")).toEqual(["mine (ignored)"]);
    const [dated = ""] = await ids(payload, "--at", "2030-01-01T00:00:00Z");
    expect(await store.queues.get({ queue: "scraper", id: dated })).toMatchObject({
      dueAt: Date.UTC(2030, 0, 1),
      maxAttempts: 3,
    });
    // The published contract allows six, and is what the queue goes by.
    const full = await fleet("task", "submit", "scraper", ...Array.from({ length: 5 }, () => payload));
    expect(full).toMatchObject({ code: 1, stdout: "" });
    expect(full.stderr).toContain("2 tasks wait, maxLength is 6");
    expect((await stats())?.counts).toMatchObject({ scheduled: 2, waiting: 0 });
  });

  test("where nobody has published a schema, only --unchecked submits", async () => {
    const { store, fleet, ids } = await setUp();
    const queues = new Queues(store, { log: SILENT });
    await queues.declare(defineQueue("scraper", Page), "guest");
    const refused = await fleet("task", "submit", "scraper", "5");
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("or say --unchecked");
    const [id = ""] = await ids("5", "--unchecked");
    expect(await store.queues.get({ queue: "scraper", id })).toMatchObject({
      payload: "5",
      state: "waiting",
    });
  });

  test("explain says why a task waits", async () => {
    const { store, fleet, ids, json } = await setUp();
    await publish(store);
    const [late = ""] = await ids(payload, "--delay", "1h");
    const first = await fleet("explain", late);
    expect(first.stdout).toMatch(
      /^scraper [0-9a-f-]+ \(scheduled\)\n {2}it is not to be started before .* \(in (1 h 0 m|59 m \d+ s)\)\n/,
    );
    expect(first.stdout).toContain('no worker has ever run "scraper"');

    const [holder = "", behind = ""] = [
      ...(await ids(payload, "--key", "k")),
      ...(await ids(payload, "--key", "k")),
    ];
    await store.queues.turn({
      queue: "scraper",
      holder: "h",
      worker: "w7",
      leaseMs: 600_000,
      settle: [],
      claim: 1,
    });
    const busy = await json<{ kind: string; findings: { code: string; message: string }[] }>(
      "explain",
      "scraper",
      behind,
    );
    expect(busy.kind).toBe("task");
    expect(busy.findings).toContainEqual({
      code: "key-busy",
      message: expect.stringMatching(
        `^its key "k" is busy: task ${holder} runs on w7 for .* \\(keyConcurrency 1\\)$`,
      ) as string,
    });
    expect((await fleet("explain", holder)).stdout).toContain("it runs on w7 for");
    const whole = await fleet("explain", "scraper");
    expect(whole.stdout).toContain("1 task waits");
    expect(whole.stdout).toContain('key "k" is at its limit (keyConcurrency 1): 1 runs, 1 waits');
    const unknown = await fleet("explain", "scrapr");
    expect(unknown).toMatchObject({
      code: 1,
      stderr: 'fleet: there is no automation, queue or task "scrapr"; did you mean "scraper"?\n',
    });
  });
});

describe.each(placesFor("Redis"))("on $name", (where) => {
  const setUp = (files?: Record<string, string>) => setUpAt(where, files);

  test("ls, show, retry and cancel: by id and by filter, with the number first", async () => {
    const { store, fleet, ids, json, stats } = await setUp();
    await publish(store);
    expect((await fleet("task", "ls")).stdout).toBe("There are no queues yet.\n");
    const [bad = "", good = ""] = await ids(payload, JSON.stringify({ url: "https://good" }));
    const holder = { queue: "scraper", holder: "h1", worker: "w1", leaseMs: 600_000 };
    const { tasks } = await store.queues.turn({ ...holder, settle: [], claim: 2 });
    await store.queues.turn({
      ...holder,
      settle: tasks.map(({ id, token }) =>
        id === bad
          ? {
              id,
              token,
              outcome: "failed",
              reason: "fatal",
              error: "Error: \u001b[31mno such page\n    at scrape",
              retryInMs: 0,
              final: true,
            }
          : { id, token, outcome: "completed", result: '{"n":1}' },
      ),
      claim: 0,
    });
    const [waiting = "", keyed = ""] = [
      ...(await ids(payload)),
      ...(await ids(payload, "--key", "k", "--delay", "1h")),
    ];

    const queues = await fleet("task", "ls");
    expect(queues.stdout).toMatch(
      /^QUEUE +WAITING +SCHEDULED +ACTIVE +COMPLETED +FAILED +CANCELLED +OLDEST\nscraper +1 +1 +0 +1 +1 +0 +\d+ (ms|s)\n$/,
    );
    const list = await fleet("task", "ls", "scraper");
    const lines = list.stdout.trim().split("\n");
    expect(lines.map((line) => line.split(/ +/)[0])).toEqual(["TASK", waiting, keyed, bad, good]);
    expect(lines[3]).toMatch(/failed, fatal .* 1\/3 .*Error: \\u001b\[31mno such page$/);
    const dead = await json<{ id: string }[]>(
      "task",
      "ls",
      "scraper",
      "--reason",
      "fatal",
      "--newer",
      "1h",
      "--limit",
      "5",
    );
    expect(dead).toEqual([
      expect.objectContaining({
        id: bad,
        state: "failed",
        error: "Error: \u001b[31mno such page\n    at scrape",
      }),
    ]);
    expect(await json("task", "ls", "scraper", "--older", "1h")).toEqual([]);
    expect(await fleet("task", "ls", "--key", "k")).toMatchObject({ code: 2 });

    const shown = await fleet("task", "show", bad);
    expect(shown.stdout).toContain("  state       failed, fatal\n");
    expect(shown.stdout).toContain("    Error: \\u001b[31mno such page\n        at scrape\n");
    expect(await json("task", "show", "scraper", good)).toMatchObject({
      id: good,
      state: "completed",
      result: { n: 1 },
      payload: { url: "https://good" },
      attempts: 1,
    });
    expect(await fleet("task", "show", "nobody")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("there is no task nobody") as string,
    });

    const vague = await fleet("task", "retry", "scraper");
    expect(vague).toMatchObject({ code: 2, stderr: expect.stringContaining("which tasks?") as string });
    const unasked = await fleet("task", "retry", "scraper", "--reason", "fatal");
    expect(unasked).toMatchObject({ code: 2, stdout: "" });
    expect(unasked.stderr).toContain('this would retry 1 task of "scraper"; say --yes');
    expect(await stats()).toMatchObject({ counts: { failed: 1, waiting: 1 } });
    expect((await fleet("task", "retry", "scraper", "--reason", "fatal", "--yes")).stdout).toBe(
      '1 task of "scraper" put back.\n',
    );
    expect(await stats()).toMatchObject({ counts: { failed: 0, waiting: 2 } });

    const mixed = await fleet("task", "cancel", "scraper", keyed, good, "nobody");
    expect(mixed).toMatchObject({
      code: 1,
      stdout: `${keyed} cancelled\n${good} has ended already\nnobody is not there\n`,
    });
    expect(await json("task", "cancel", "scraper", "--all", "--yes")).toMatchObject({
      queue: "scraper",
      count: 2,
      outcomes: { cancelled: 2 },
    });
    expect(await stats()).toMatchObject({ counts: { waiting: 0, scheduled: 0, cancelled: 3 } });
    expect(await fleet("task", "retry", "scraper", "--state", "waiting")).toMatchObject({ code: 2 });
    expect((await fleet("task", "retry", "scraper", "--all", "--yes")).stdout).toBe(
      '0 tasks of "scraper" put back.\n',
    );
    expect((await fleet("task", "retry", "scraper", keyed)).stdout).toBe(`${keyed} waits again\n`);
  });

  test("with a worker: results, the dead letter, and a task that runs is cancelled", async () => {
    const { cwd, place, fleet, ids, json } = await setUp({ "scraper.ts": SCRAPER });
    const worker = startFleet(["worker", "scraper.ts", ...place.flags], { cwd });
    const page = (path: string) => JSON.stringify({ url: `https://example.com${path}` });
    await vi.waitFor(
      async () => expect((await fleet("explain", "scraper/0")).stdout).toContain("scraper/0 is running on"),
      { timeout: 40_000 },
    );
    const called = await fleet("task", "submit", "scraper", page("/"), "--wait", "60s");
    expect(called).toMatchObject({ code: 0, stdout: '{"host":"example.com"}\n' });

    const gone = await fleet("task", "submit", "scraper", page("/gone"), "--wait", "60s");
    expect(gone).toMatchObject({ code: 1, stdout: "" });
    expect(gone.stderr).toContain("failed (fatal) after 1 attempt");
    expect(gone.stderr).toContain("no such page");

    const [slow = "", next = ""] = [...(await ids(page("/slow"))), ...(await ids(page("/slow")))];
    await vi.waitFor(
      async () => expect(await json("task", "show", slow)).toMatchObject({ state: "active" }),
      { timeout: 20_000 },
    );
    expect((await fleet("explain", next)).stdout).toMatch(/the slot is busy|runs on/);
    expect((await fleet("task", "cancel", "scraper", slow)).stdout).toBe(
      `${slow} runs; it was asked to end\n`,
    );
    await vi.waitFor(
      async () => expect(await json("task", "show", slow)).toMatchObject({ state: "cancelled" }),
      { timeout: 20_000 },
    );
    expect((await fleet("task", "cancel", "scraper", "--all", "--yes")).code).toBe(0);
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
  });
});
