// Short (`npm test`): queues from the side of those who submit, on both stores. Tasks are run by turns of the store itself.
import { randomUUID } from "node:crypto";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { defineQueue } from "../src/contracts/queue.ts";
import { defineBatch } from "../src/automation/definition-batch.ts";
import { FleetError, isFleetError, type ErrorCode } from "../src/errors.ts";
import { SILENT } from "../src/internal/log.ts";
import { Queues } from "../src/primitives/queues.ts";
import type { ClaimedTask, Settlement } from "../src/protocol/task.ts";
import type { QueueStore } from "../src/store/queue-store.ts";
import type { Store } from "../src/store/store.ts";
import { openPlace, PLACES } from "./support/places.ts";
import { temporaryFolder } from "./support/stores.ts";

vi.setConfig({ testTimeout: 30_000 });

const Page = z.object({
  url: z.url(),
  since: z.coerce.date().optional(),
  tries: z.number().int().default(3),
  extra: z.unknown().optional(),
});
const Found = z.object({ at: z.coerce.date(), links: z.number() });
const PAGES = defineQueue("pages", { payload: Page, result: Found, maxAttempts: 2, maxLength: 5 });
const ANY = defineQueue("any", z.unknown());
const url = "https://example.com/";

type End = Settlement extends infer S ? (S extends unknown ? Omit<S, "id" | "token"> : never) : never;
const completed = (result: unknown): End => ({ outcome: "completed", result: JSON.stringify(result) });
const failed: End = {
  outcome: "failed",
  reason: "fatal",
  error: "Error: no such page\n    at scrape",
  retryInMs: 0,
  final: true,
};

describe.each(PLACES)("on $name", ({ at }) => {
  /** Queues of one process, and a second connection for those who run the tasks. */
  async function setUp(
    options: { pollMs?: number; replace?: (inner: QueueStore) => Partial<QueueStore> } = {},
  ) {
    const folder = temporaryFolder();
    onTestFinished(() => folder.remove());
    const place = at(folder.path);
    const [store, other] = [await openPlace(place), await openPlace(place)];
    const calls: string[] = [];
    const replaced: Partial<QueueStore> = options.replace?.(store.queues) ?? {};
    const queueStore = new Proxy(store.queues, {
      get: (target, key: keyof QueueStore) => {
        const method = (replaced[key] ?? target[key]) as (...args: unknown[]) => unknown;
        return (...args: unknown[]) => {
          calls.push(key);
          return method.apply(target, args);
        };
      },
    });
    const withCalls: Store = { ...store, fleetId: store.fleetId, queues: queueStore };
    const queues = new Queues(withCalls, {
      log: SILENT,
      pollMs: options.pollMs ?? 60_000,
    });
    onTestFinished(async () => {
      await queues.close();
      await Promise.all([store.close(), other.close()]);
    });
    /** Claims up to `n` tasks, and ends each as `end` says. */
    const work = async (queue: string, end: (task: ClaimedTask) => End | undefined, n = 100) => {
      const args = { queue, holder: randomUUID(), worker: "w1", leaseMs: 30_000 };
      const { tasks } = await other.queues.turn({ ...args, settle: [], claim: n });
      const settle = tasks.flatMap((task): Settlement[] => {
        const how = end(task);
        return how === undefined ? [] : [{ ...how, id: task.id, token: task.token }];
      });
      await other.queues.turn({ ...args, settle, claim: 0 });
      return tasks;
    };
    return { store: other, queues, calls, work };
  }

  const refusal = async (work: Promise<unknown>, code: ErrorCode) => {
    const error: unknown = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(isFleetError(error, code), `${code}, got ${String(error)}`).toBe(true);
    return error as FleetError;
  };

  describe("a submission", () => {
    it("carries the input form, byte for byte, and is parsed by nobody on its way", async () => {
      const { queues, store } = await setUp();
      const queue = queues.handle(PAGES);
      const payload = { url, since: "2027-01-01", extra: { tags: [], m: {}, n: null } };
      const { id, outcome } = await queue.submit(payload, { key: "example.com", priority: 7 });
      expect(outcome).toBe("submitted");
      const record = await store.queues.get({ queue: "pages", id });
      expect(record).toMatchObject({
        state: "waiting",
        payload: JSON.stringify(payload),
        priority: 7,
        key: "example.com",
        maxAttempts: 2,
      });
      expect(await queue.length()).toBe(1);
    });

    it("that does not fit is refused with the field's name, and nothing is there", async () => {
      const { queues, calls } = await setUp();
      const queue = queues.handle(PAGES);
      const wrong = await refusal(queue.submit({ url: 1 } as never), "FLEET_PAYLOAD_INVALID");
      expect(wrong).toBeInstanceOf(TypeError);
      expect(wrong.message).toMatch(/^queue "pages": payload: url: /);
      expect(wrong.issues).toEqual([expect.objectContaining({ pointer: "/url" })]);
      const lossy = await refusal(queue.submit({ url, extra: { n: Number.NaN } }), "FLEET_PAYLOAD_INVALID");
      expect(lossy.message).toContain("extra.n");
      const large = await refusal(
        queue.submit({ url, extra: "x".repeat(262_144) }),
        "FLEET_PAYLOAD_TOO_LARGE",
      );
      expect(large.message).toMatch(/has 2621\d\d bytes, the limit is 262144/);
      for (const maxAttempts of [Number.POSITIVE_INFINITY, Number.NaN, -1, 1.5]) {
        const error = await refusal(queue.submit({ url }, { maxAttempts }), "FLEET_OPTION_INVALID");
        expect(error.message).toContain(`maxAttempts must be`);
        expect(error.message).toContain(`got ${maxAttempts}`);
      }
      expect(calls).toEqual([]);
      expect(await queue.length()).toBe(0);
    });

    it("alone waits for nothing, and those of one tick travel together, in order", async () => {
      const { queues, calls, work } = await setUp();
      const queue = queues.handle(ANY);
      await queue.submit("first");
      // The queue was not known: it was declared, and the task submitted again.
      expect(calls.splice(0)).toEqual(["submit", "declare", "submit"]);
      await queue.submit("second");
      expect(calls.splice(0)).toEqual(["submit"]);
      await Promise.all(Array.from({ length: 700 }, (_, n) => queue.submit(n)));
      expect(calls.splice(0)).toEqual(["submit", "submit"]);
      const tasks = await work("any", () => completed(0), 1000);
      expect(tasks.map(({ payload }) => JSON.parse(payload) as unknown)).toEqual([
        "first",
        "second",
        ...Array.from({ length: 700 }, (_, n) => n),
      ]);
    });

    it("of the same id is the same task", async () => {
      const { queues } = await setUp();
      const queue = queues.handle(ANY);
      expect(await queue.submit(1, { id: "mine" })).toMatchObject({ id: "mine", outcome: "submitted" });
      expect(await queue.submit(2, { id: "mine" })).toMatchObject({ id: "mine", outcome: "repeated" });
      expect(await queue.get("mine")).toMatchObject({ payload: 1 });
      expect(await queue.length()).toBe(1);
    });

    it("that is a duplicate answers the task that stands in for it, whose result it waits for", async () => {
      const { queues, work } = await setUp();
      const queue = queues.handle(ANY);
      const first = await queue.submit(1, { dedupeKey: "d" });
      const second = await queue.submit(2, { dedupeKey: "d" });
      const third = await queue.submit(3, { dedupeKey: "d", onDuplicate: "replace" });
      expect([second, third].map(({ id, outcome }) => [id, outcome])).toEqual([
        [first.id, "ignored"],
        [first.id, "replaced"],
      ]);
      const results = [first, second, third].map((task) => task.result({ waitSeconds: 600 }));
      await work("any", ({ payload }) => completed(`ran ${payload}`));
      expect(await Promise.all(results)).toEqual(["ran 3", "ran 3", "ran 3"]);
      expect(
        await queue.call(4, { dedupeKey: "e", waitSeconds: 0 }).catch((error: FleetError) => error.code),
      ).toBe("FLEET_TASK_PENDING");
    });

    it("may be due months ahead", async () => {
      const { queues, work } = await setUp();
      const queue = queues.handle(ANY);
      const runAt = new Date(Date.now() + 180 * 86_400_000);
      const { id } = await queue.submit(1, { runAt });
      expect(await queue.get(id)).toMatchObject({ state: "scheduled", dueAt: runAt.getTime() });
      expect(await queue.length()).toBe(1);
      expect(await work("any", () => completed(0))).toEqual([]);
    });
  });

  describe("a list of submissions", () => {
    it("is written as a whole or not at all", async () => {
      const { queues, calls, store } = await setUp();
      const queue = queues.handle(PAGES);
      const wrong = await refusal(queue.submitMany([{ url }, { url: "no url" }]), "FLEET_PAYLOAD_INVALID");
      expect(wrong.message).toContain('queue "pages": payload 1: url');
      expect(calls).toEqual([]);
      expect(await queue.submitMany([])).toEqual([]);

      expect(await queue.submitMany([{ url }, { url }, { url }])).toHaveLength(3);
      const full = await refusal(queue.submitMany([{ url }, { url }, { url }]), "FLEET_QUEUE_FULL");
      expect(full.message).toContain("3 tasks wait, maxLength is 5");
      expect(full.message).toContain("submit fewer, add slots, or raise maxLength");
      expect(full.retryable).toBe(true);
      expect(await queue.length()).toBe(3);
      await queue.submitMany([{ url }, { url }]);
      expect((await refusal(queue.submit({ url }), "FLEET_QUEUE_FULL")).message).toContain(
        "task was not submitted",
      );
      expect((await store.queues.stats({ queue: "pages" }))?.totals).toMatchObject({
        submitted: 5,
        refused: 4,
      });
    });

    it("one that does not fit does not take down another of the same tick", async () => {
      const { queues } = await setUp();
      const queue = queues.handle(PAGES);
      const [large, small] = await Promise.allSettled([
        queue.submitMany(Array.from({ length: 6 }, () => ({ url }))),
        queue.submitMany([{ url }, { url }]),
      ]);
      expect([large.status, small.status]).toEqual(["rejected", "fulfilled"]);
      expect(await queue.length()).toBe(2);
    });

    it("takes options for all, or of each", async () => {
      const { queues } = await setUp();
      const queue = queues.handle(ANY);
      const shared = await queue.submitMany([1, 2], { priority: 5 });
      const each = await queue.submitMany(["a", "b"], (payload, index) => ({
        key: payload as string,
        priority: index,
      }));
      const seen = await Promise.all([...shared, ...each].map(({ id }) => queue.get(id)));
      expect(seen.map((task) => [task?.key, task?.priority])).toEqual([
        [null, 5],
        [null, 5],
        ["a", 0],
        ["b", 1],
      ]);
      const same = await refusal(queue.submitMany([1, 2], { dedupeKey: "d" }), "FLEET_OPTION_INVALID");
      expect(same.message).toContain("dedupeKey would be the same for 2 tasks");
      const unknown = await refusal(
        queue.submitMany([1, 2], () => ({ keys: "d" }) as never),
        "FLEET_OPTION_INVALID",
      );
      expect(unknown.message).toContain('options of payload 0: unknown option "keys"; did you mean "key"?');
      const long = await refusal(
        queue.submitMany(Array.from({ length: 1001 }, () => 1)),
        "FLEET_OPTION_INVALID",
      );
      expect(long.message).toContain("at most 1000 payloads, got 1001");
    });
  });

  describe("a result", () => {
    it("is told by the watch, and parsed by the one who asked", async () => {
      const { queues, work } = await setUp();
      const task = await queues.handle(PAGES).submit({ url });
      const result = task.result({ waitSeconds: 600 });
      await work("pages", () => completed({ at: "2027-01-01T00:00:00.000Z", links: 5 }));
      const { at: when, links } = await result;
      expect(when).toEqual(new Date("2027-01-01"));
      expect(links).toBe(5);
      expect(await task.result()).toEqual({ at: when, links });
      expect(await queues.handle(PAGES).result(task.id)).toEqual({ at: when, links });
    });

    it("costs a call one submission and one look, however long it takes", async () => {
      const { queues, calls, work } = await setUp();
      const queue = queues.handle(ANY);
      const warm = queue.call("warm");
      await vi.waitFor(async () => expect(await work("any", () => completed(1))).toHaveLength(1));
      await warm;
      calls.length = 0;
      const call = queue.call("x", { waitSeconds: 600 });
      await vi.waitFor(async () => expect(await work("any", () => completed("done"))).toHaveLength(1));
      expect(await call).toBe("done");
      expect(calls).toEqual(["submit", "ask"]);
    });

    it("is found by looking where every hint is lost", async () => {
      const lost = { ready: Promise.resolve(), close: () => Promise.resolve() };
      const { queues, work } = await setUp({ pollMs: 50, replace: () => ({ watch: () => lost }) });
      const queue = queues.handle(ANY);
      const calls = Array.from({ length: 3 }, (_, n) => queue.call(n, { waitSeconds: 600 }));
      await vi.waitFor(async () => expect(await queue.length()).toBe(3));
      await work("any", ({ payload }) => completed(`ran ${payload}`));
      expect(await Promise.all(calls)).toEqual(["ran 0", "ran 1", "ran 2"]);
    });

    it("is waited for over a store that is away", async () => {
      let away = 0;
      const { queues, work } = await setUp({
        pollMs: 50,
        replace: (inner) => ({
          ask: (args) => {
            if (away-- > 0) throw new FleetError("FLEET_STORE_UNAVAILABLE", "away", { retryable: true });
            return inner.ask(args);
          },
        }),
      });
      const task = await queues.handle(ANY).submit(1);
      away = 3;
      const result = task.result({ waitSeconds: 600 });
      await work("any", () => completed("there"));
      expect(await result).toBe("there");
      expect(away).toBeLessThan(0);
    });

    it("that there is none of says why", async () => {
      const { queues, work } = await setUp();
      const queue = queues.handle(ANY);
      const [bad, dropped] = [await queue.submit(1), await queue.submit(2)];
      expect(await queue.cancel(dropped.id)).toBe("cancelled");
      await work("any", () => failed);
      const failure = await refusal(bad.result(), "FLEET_TASK_FAILED");
      expect(failure.message).toBe(
        `queue "any": task ${bad.id} failed (fatal) after 1 attempt: Error: no such page`,
      );
      expect((failure.cause as Error).stack).toContain("at scrape");
      await refusal(dropped.result(), "FLEET_TASK_CANCELLED");
      await refusal(queue.result("nobody"), "FLEET_TASK_UNKNOWN");
      await refusal(queue.result("nobody", { waitSeconds: 0 }), "FLEET_TASK_UNKNOWN");
      expect((await refusal(queue.result(5 as never), "FLEET_OPTION_INVALID")).message).toContain(
        "id must be the id of a task",
      );
      expect((await refusal(queue.unschedule(""), "FLEET_OPTION_INVALID")).message).toContain(
        "id must be the id of a schedule",
      );
    });

    it("that is late is pending: the task goes on, and can be waited for again", async () => {
      const { queues, work } = await setUp();
      const task = await queues.handle(ANY).submit(1);
      for (const waitSeconds of [0, 0.05]) {
        const late = await refusal(task.result({ waitSeconds }), "FLEET_TASK_PENDING");
        expect(late).toMatchObject({ retryable: true });
        expect(late.message).toContain("(waiting)");
      }
      const again = task.result({ waitSeconds: 600 });
      await work("any", () => completed(1));
      expect(await again).toBe(1);
    });

    it("that does not fit the asker's schema is refused by name", async () => {
      const { queues, work } = await setUp();
      const task = await queues.handle(PAGES).submit({ url });
      await work("pages", () => completed({ at: "2027-01-01", links: "many" }));
      const wrong = await refusal(task.result(), "FLEET_PAYLOAD_INVALID");
      expect(wrong.message).toContain(`queue "pages": result of task ${task.id}: links`);
    });

    it("is not waited for by a slot that is to end, nor by a fleet that is closed", async () => {
      const { queues, calls } = await setUp();
      const stop = new AbortController();
      const waits: boolean[] = [];
      const activity = { progress: () => undefined, waiting: (on: boolean) => void waits.push(on) };
      const slot = queues.handle(ANY, { signal: stop.signal, activity }).call(1);
      const other = queues.handle(ANY).call(2);
      const ended = [refusal(slot, "FLEET_TASK_PENDING"), refusal(other, "FLEET_CLOSED")] as const;
      await vi.waitFor(() => expect(calls.filter((call) => call === "ask").length).toBeGreaterThanOrEqual(2));
      stop.abort("drain");
      expect((await ended[0]).message).toContain("was ended (drain)");
      expect(waits).toEqual([true, false]);
      await queues.close();
      await ended[1];
      expect(() => queues.handle(ANY)).toThrow(expect.objectContaining({ code: "FLEET_CLOSED" }));
    });
  });

  describe("a task", () => {
    it("can be looked at from its submission to its end", async () => {
      const { queues, work } = await setUp();
      const queue = queues.handle(PAGES);
      expect(await queue.get("nobody")).toBeUndefined();
      const { id } = await queue.submit({ url }, { dedupeKey: "d", ttlSeconds: 60 });
      expect(await queue.get(id)).toMatchObject({
        id,
        queue: "pages",
        state: "waiting",
        payload: { url },
        dedupeKey: "d",
        result: undefined,
        finishedAt: null,
      });
      const [claimed] = await work("pages", () => undefined);
      expect(await queue.get(id)).toMatchObject({ state: "active", worker: "w1", attempts: 0 });
      expect(claimed?.id).toBe(id);
    });

    it("that runs is asked to end by whoever cancels it, and its holder is told", async () => {
      const { queues, store, work } = await setUp();
      const queue = queues.handle(ANY);
      const { id } = await queue.submit(1);
      const holder = randomUUID();
      const turn = { queue: "any", holder, worker: "w1", leaseMs: 30_000 };
      const { tasks } = await store.queues.turn({ ...turn, settle: [], claim: 1 });
      expect(await queue.cancel(id)).toBe("cancelling");
      expect(await queue.get(id)).toMatchObject({ state: "active", cancelling: true });
      const { held } = await store.queues.keep({ queue: "any", holders: [holder], leaseMs: 30_000 });
      expect(held).toEqual([[{ id, token: tasks[0]?.token, cancelling: true }]]);
      await store.queues.turn({
        ...turn,
        settle: [{ id, token: tasks[0]?.token as string, outcome: "cancelled" }],
        claim: 0,
      });
      expect(await queue.get(id)).toMatchObject({ state: "cancelled" });
      expect(await queue.cancel("nobody")).toBe("unknown");

      expect(await queue.retry(id)).toBe("waiting");
      await work("any", () => completed("after all"));
      expect(await queue.result(id)).toBe("after all");
      expect(await queue.retry(id)).toBe("completed");
      expect(await queue.cancel(id)).toBe("finished");
    });
  });

  it("a queue that is removed again and again takes nothing, and says so", async () => {
    const { queues, calls } = await setUp({
      replace: () => ({ submit: () => Promise.resolve({ outcome: "undeclared" }) }),
    });
    const busy = await refusal(queues.handle(ANY).submit(1), "FLEET_STORE_BUSY");
    expect(busy.retryable).toBe(true);
    expect(calls.filter((call) => call === "submit").length).toBeLessThan(10);
  });

  it("a batch automation's queue is used like a contract, with its types", async () => {
    const { queues, work } = await setUp();
    const { tasks } = defineBatch("pages", {
      tasks: { payload: Page, result: Found },
      runOne: () => ({ at: "2027-01-01", links: 1 }),
    });
    const result = queues.handle(tasks).call({ url }, { waitSeconds: 600 });
    await vi.waitFor(async () =>
      expect(await work("pages", () => completed({ at: "2027-01-01", links: 1 }))).toHaveLength(1),
    );
    const found: { at: Date; links: number } = await result;
    expect(found).toEqual({ at: new Date("2027-01-01"), links: 1 });
    // @ts-expect-error a payload of another type
    await refusal(queues.handle(tasks).submit({ url: 5 }), "FLEET_PAYLOAD_INVALID");
  });

  it("the owner's settings count, whoever came first", async () => {
    const { queues, store } = await setUp();
    const guest = defineQueue("pages", { payload: Page, maxLength: 99 });
    await queues.handle(guest).submit({ url });
    const limit = async () => (await store.queues.stats({ queue: "pages" }))?.settings.maxLength;
    expect(await limit()).toBe(99);
    await queues.declare(PAGES, "owner");
    await queues.declare(guest, "guest");
    expect(await limit()).toBe(5);
  });

  it("a fence is asked before each effect", async () => {
    const { queues, calls } = await setUp();
    const queue = queues.handle(ANY, {
      fence: () => {
        throw new FleetError("FLEET_LEASE_LOST", "late");
      },
    });
    for (const effect of [
      queue.submit(1),
      queue.call(1),
      queue.submitMany([1]),
      queue.cancel("x"),
      queue.retry("x"),
    ])
      await refusal(effect, "FLEET_LEASE_LOST");
    expect(calls.filter((call) => call !== "watch")).toEqual([]);
  });
});
