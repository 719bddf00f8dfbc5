import { expect, it, onTestFinished, vi } from "vitest";
import { QUEUE_DEFAULTS } from "../contracts/queue.ts";
import { SILENT } from "../internal/log.ts";
import { settingsOf } from "../primitives/queue-settings.ts";
import { openStore } from "../store/open.ts";
import type { Books } from "./books.ts";
import { TaskKeeper } from "./task-keeper.ts";

it("charges a lost process's tasks for what had begun, and gives back what was only claimed", async () => {
  const store = await openStore("sqlite::memory:", { namespace: "keeper" });
  onTestFinished(() => store.close());
  const { queues } = store;
  await queues.declare({ queue: "q", settings: settingsOf({ options: QUEUE_DEFAULTS }), as: "owner" });
  const options = { payload: "null", delayMs: 0, priority: 0, maxAttempts: 5, timeoutMs: 0, ttlMs: 60_000 };
  const list = ["guilty", "beside", "late", "ahead", "cancelled"].map((id) => ({ id, ...options }));
  await queues.submit({ queue: "q", lists: [list] });
  const claim = { queue: "q", holder: "h", worker: "w", leaseMs: 1000, settle: [] };
  const { tasks } = await queues.turn({ ...claim, claim: 5 });
  expect(tasks).toHaveLength(5);
  await queues.cancel({ queue: "q", ids: ["cancelled"] });
  const token = (id: string) => tasks.find((task) => task.id === id)?.token ?? "";

  const books = { timings: { beatMs: 1000, leaseMs: 1000 }, member: { id: "w" } } as unknown as Books;
  const keeper = new TaskKeeper({ queues, books, log: SILENT, hosts: () => [] });
  keeper.lost({
    queue: "q",
    holder: "h",
    settle: [
      {
        id: "late",
        token: token("late"),
        outcome: "failed",
        reason: "timeout",
        error: "late",
        retryInMs: 0,
        final: false,
      },
    ],
    crashed: ["guilty"],
    begun: ["guilty", "beside", "late"].map(token),
    error: "gone",
  });
  // What it had sent before it was killed arrives only now.
  await vi.waitFor(async () =>
    expect((await queues.get({ queue: "q", id: "ahead" }))?.state).toBe("waiting"),
  );
  expect((await queues.turn({ ...claim, claim: 5 })).tasks).toHaveLength(4);
  await keeper.stop();

  const record = (id: string) => queues.get({ queue: "q", id });
  const counted = { state: "waiting", attempts: 0, crashes: 0, interruptions: 0, expiresAt: null };
  expect(await record("guilty")).toMatchObject({ ...counted, crashes: 1, error: "gone" });
  expect(await record("beside")).toMatchObject({ ...counted, interruptions: 1 });
  expect(await record("late")).toMatchObject({ ...counted, attempts: 1 });
  const ahead = await record("ahead");
  // Its time to live goes on, as it was never started.
  expect(ahead).toMatchObject({ ...counted, startedAt: null, expiresAt: (ahead?.submittedAt ?? 0) + 60_000 });
  expect(await record("cancelled")).toMatchObject({ state: "cancelled", interruptions: 0 });
});
