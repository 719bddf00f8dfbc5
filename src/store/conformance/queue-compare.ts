import { expect } from "vitest";
import { TASK_STATES } from "../../protocol/task.ts";
import type { TurnResult } from "../queue-store.ts";
import type { Queue } from "./queue-driver.ts";
import type { QueueModel } from "./queue-model.ts";

const ascending = (a: string, b: string) => (a < b ? -1 : 1);

export function checkReady(model: QueueModel, answer: Pick<TurnResult, "ready" | "nextDueAt">): void {
  const most = model.row.ready();
  expect(answer.ready).toBeLessThanOrEqual(most);
  expect(answer.ready > 0).toBe(most > 0);
  const due = model.in("scheduled").map(({ dueAt }) => dueAt);
  expect(answer.nextDueAt).toBe(due.length === 0 ? null : Math.min(...due));
}

export async function compareStats(q: Queue, model: QueueModel): Promise<void> {
  const { counts, totals, reasons, busyKeys, oldestWaitingAt } = await q.stats();
  const waiting = model.in("waiting").map(({ submittedAt }) => submittedAt);
  const seen = {
    counts,
    totals,
    reasons: Object.fromEntries(Object.entries(reasons).filter(([, n]) => n > 0)),
    busyKeys: busyKeys.toSorted((a, b) => ascending(a.key, b.key)),
    oldestWaitingAt,
  };
  expect(seen).toEqual({
    counts: Object.fromEntries(TASK_STATES.map((state) => [state, model.in(state).length])),
    totals: model.totals,
    reasons: model.reasons,
    busyKeys: model.row.busy(),
    oldestWaitingAt: waiting.length === 0 ? null : Math.min(...waiting),
  });
}

export async function compareTasks(q: Queue, model: QueueModel): Promise<void> {
  for (const expected of model.tasks.values()) {
    const { id, payload, state, attempts, crashes, interruptions, cancelling, reason, result } = expected;
    const { submittedAt, finishedAt, leaseUntil, priority, maxAttempts, started } = expected;
    const record = await q.get(id);
    const life = { state, attempts, crashes, interruptions, cancelling, reason, result };
    const times = { submittedAt, finishedAt, leaseUntil };
    const names = { key: expected.key ?? null, dedupeKey: expected.dedupe?.key ?? null };
    expect(record).toMatchObject({ id, payload, priority, maxAttempts, ...life, ...times, ...names });
    if (!started) expect(record.expiresAt).toBe(expected.expiresAt);
    if (state === "scheduled") expect(record.dueAt).toBe(expected.dueAt);
  }
  for (const state of TASK_STATES) {
    const expected = model.in(state).map(({ id }) => id);
    const ids = await q.ids(state, 4);
    expect({ state, ids: ids.toSorted() }).toEqual({ state, ids: expected.toSorted() });
  }
}
