import * as fc from "fast-check";
import { expect } from "vitest";
import type { ClaimedTask, Settlement } from "../../protocol/task.ts";
import { HandClock, siteCase, type StoreHarness } from "./harness.ts";
import { checkReady, compareStats, compareTasks } from "./queue-compare.ts";
import { declaredQueue, LEASE_MS, type Queue, SETTINGS, task } from "./queue-driver.ts";
import { QueueModel } from "./queue-model.ts";
import { LIMITS, type Op, OPS, type Settle, type Submission } from "./queue-ops.ts";

/** One sequence of calls, made to a store and to the model side by side. */
interface Walk {
  q: Queue;
  model: QueueModel;
  clock: HandClock;
  /** All claims ever made, the newest last. */
  claims: ClaimedTask[];
  submitted: number;
}

const SOME_SETTINGS = fc.record({
  crashLimit: fc.integer({ min: 1, max: 3 }),
  keepMs: fc.constantFrom(60_000, 3_600_000),
  keepFailedMs: fc.constantFrom(90_000, 3_600_000),
});

export function queueModel(harness: StoreHarness): void {
  siteCase(
    harness,
    "any sequence of calls does what a plain list of tasks would do",
    async ({ open }) => {
      const clock = new HandClock();
      const store = await open(clock.options);
      const seen = { runs: 0, claims: 0, ends: {} as Record<string, number> };
      const property = fc.asyncProperty(SOME_SETTINGS, LIMITS, OPS, async (some, limits, ops) => {
        seen.runs += 1;
        const settings = { ...SETTINGS, ...some, ...limits };
        const q = await declaredQueue(store, settings, `q${seen.runs}`);
        const walk = { q, model: new QueueModel(settings), clock, claims: [], submitted: 0 };
        await follow(walk, ops);
        seen.claims += walk.claims.length;
        for (const [what, n] of Object.entries({ ...walk.model.totals, ...walk.model.reasons }))
          seen.ends[what] = (seen.ends[what] ?? 0) + n;
      });
      await fc.assert(property, { numRuns: 100 });
      // The walks led somewhere.
      expect(seen.claims).toBeGreaterThan(300);
      const ends = ["duplicates", "retried", "crashed", "interrupted", "expired", "poison", "cancelled"];
      expect(ends.filter((what) => (seen.ends[what] ?? 0) < 5)).toEqual([]);
    },
    60_000,
  );
}

async function follow(walk: Walk, ops: readonly Op[]): Promise<void> {
  walk.model.now = walk.clock.ms;
  for (const op of ops) {
    await step(walk, op);
    await compareStats(walk.q, walk.model);
  }
  await compareTasks(walk.q, walk.model);
}

async function step(walk: Walk, op: Op): Promise<void> {
  const { q, model } = walk;
  switch (op.do) {
    case "submit":
      return submit(walk, op.tasks);
    case "turn":
      return turn(walk, op.holder, op.claim, op.settle);
    case "lose": {
      const held = op.holders.flatMap((holder) => model.heldBy(holder));
      const crashed = held.filter((_, i) => (op.crashed >> i) % 2 === 1).map(({ id }) => id);
      const answer = await q.lose(op.holders, crashed);
      expect(answer).toEqual(model.row.step(() => model.lose(op.holders, crashed)));
      return;
    }
    case "limit":
      await declaredQueue(q.store, { ...model.settings, ...op.limits }, q.queue);
      model.row.step(() => Object.assign(model.settings, op.limits));
      return;
    case "keep":
      return keep(walk, op.holder);
    case "cancel": {
      const ids = op.picks.map((pick) => idOf(walk, pick));
      const answer = await q.cancel(...ids);
      expect(answer).toEqual(model.row.step(() => ids.map((id) => model.cancel(id))));
      return;
    }
    case "retry": {
      const ids = op.picks.map((pick) => idOf(walk, pick));
      const answer = await q.retry(...ids);
      expect(answer).toEqual(model.row.step(() => ids.map((id) => model.retry(id))));
      return;
    }
    case "advance":
      walk.clock.advance(op.ms);
      model.now = walk.clock.ms;
      // What time has done shows with the next of these; which one it is must not matter.
      if (op.holder === undefined) return sweep(walk);
      return turn(walk, op.holder, op.claim, op.settle);
  }
}

/** An id that was given, or the next that was not. */
function idOf({ submitted }: Walk, pick: number): string {
  return `t${String(pick % (submitted + 1)).padStart(3, "0")}`;
}

async function submit(walk: Walk, submissions: readonly Submission[]): Promise<void> {
  const { q, model } = walk;
  const given = submissions.map(({ again, ...more }, i) => {
    const id = idOf(walk, again ?? walk.submitted);
    if (again === undefined) walk.submitted += 1;
    return task(id, { ...more, payload: JSON.stringify([walk.submitted, i]) });
  });
  const answers = await q.submitted(...given);
  for (const [i, one] of given.entries()) {
    const expected = model.row.step(() => model.submit(one));
    expect(answers[i]).toMatchObject(expected);
    const replaced = expected.outcome === "replaced" && model.tasks.get(expected.id ?? "");
    if (replaced) model.row.replaced(replaced);
  }
}

async function keep({ q, model, claims }: Walk, holder: string): Promise<void> {
  const { queue } = q;
  const answer = await q.store.queues.keep({ queue, holders: [holder], leaseMs: LEASE_MS });
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
  expect(answer.held.map((held) => held.toSorted(byId))).toEqual([model.keep(holder).toSorted(byId)]);
  model.row.step(() => model.reclaim());
  checkReady(model, answer);
  for (const { token } of claims.slice(-1)) expect(BigInt(answer.at)).toBeGreaterThan(BigInt(token));
}

async function sweep({ q, model }: Walk): Promise<void> {
  const passed = model.row.step(() => model.pass());
  expect(await q.sweep()).toEqual({ ...passed, forgotten: model.forget() });
}

async function turn(walk: Walk, holder: string, claim: number, settles: readonly Settle[]): Promise<void> {
  const { q, model } = walk;
  const settle = settles.map((one) => settlement(walk, one)).filter((one) => one !== undefined);
  const answer = await q.turn(holder, claim, settle);
  const allowed = model.row.step(() => {
    const answers = settle.map((one) => model.settle(one));
    model.pass();
    return answers;
  });
  expect(answer.settled).toHaveLength(settle.length);
  for (const [i, one] of answer.settled.entries()) expect(allowed[i]).toContain(one);
  expect(answer.now).toBe(model.now);
  for (const claimed of answer.tasks) follows(walk, holder, claimed);
  if (answer.tasks.length < claim) expect(model.row.next().map(({ id }) => id)).toEqual([]);
  else expect(answer.tasks).toHaveLength(claim);
  checkReady(model, answer);
}

function settlement({ model, claims }: Walk, { pick, late, end }: Settle): Settlement | undefined {
  const live = claims.filter(({ id, token }) => model.tasks.get(id)?.token === token);
  const among = late ? claims : live;
  const claim = among[pick % Math.max(1, among.length)];
  return claim && { id: claim.id, token: claim.token, ...end };
}

/** That a claim was one of those that may come next; the model makes it too. */
function follows({ model, claims }: Walk, holder: string, claimed: ClaimedTask): void {
  expect(model.row.next().map(({ id }) => id)).toContain(claimed.id);
  const expected = model.tasks.get(claimed.id);
  if (expected === undefined) throw new Error("it is one of the next");
  const { payload, attempts, crashes, interruptions, maxAttempts, submittedAt } = expected;
  const key = expected.key ?? null;
  expect(claimed).toMatchObject({ payload, attempts, crashes, interruptions, maxAttempts, submittedAt, key });
  for (const { token } of claims.slice(-1)) expect(BigInt(claimed.token)).toBeGreaterThan(BigInt(token));
  claims.push(claimed);
  model.claim(holder, claimed);
  model.row.served(expected);
}
