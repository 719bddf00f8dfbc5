import { expect } from "vitest";
import type { ClaimedTask } from "../../protocol/task.ts";
import { HandClock, openThree, range, siteCase, type StoreHarness, until } from "./harness.ts";
import { completed, declaredQueue, ended, LEASE_MS, type Queue, task } from "./queue-driver.ts";
import { TEXTS } from "./streams-order.ts";
import type { Store } from "../store.ts";

const TASKS = 150;

/** What several takers hold, by their own knowledge: no task may be with two of them. */
class Hands {
  readonly held = new Map<string, string>();
  readonly doubled: string[] = [];
  /** Which taker has had which claim. */
  readonly tokens = new Map<string, string>();
  refused = 0;
  working = true;

  /** False where the taker had it already: a hand-off may come twice. */
  take(taker: string, { id, token }: ClaimedTask): boolean {
    if (this.tokens.get(token) === taker) return false;
    if (this.held.has(id) || this.tokens.has(token)) this.doubled.push(id);
    this.held.set(id, token);
    this.tokens.set(token, taker);
    return true;
  }
}

/** A holder that takes what its turns and its watch bring, and says that it is idle. */
class Taker {
  readonly holder: string;
  readonly #store: Store;
  readonly #hands: Hands;
  readonly #mine = new Map<string, ClaimedTask>();
  readonly #givenBack = new Set<string>();

  constructor(store: Store, hands: Hands, holder: string) {
    this.#store = store;
    this.#hands = hands;
    this.holder = holder;
  }

  watch() {
    return this.#store.queues.watch(
      { queue: "q", taker: this.holder },
      {
        onTasks: (tasks) => {
          this.#take(tasks);
        },
      },
    );
  }

  #take(tasks: readonly ClaimedTask[]): void {
    for (const claim of tasks) {
      if (this.#givenBack.has(claim.token)) continue;
      if (this.#hands.take(this.holder, claim)) this.#mine.set(claim.token, claim);
    }
  }

  /** Completes all that it has, and asks for one more. */
  async turn(): Promise<void> {
    const done = [...this.#mine.values()];
    this.#mine.clear();
    for (const { id } of done) this.#hands.held.delete(id);
    const { holder } = this;
    const settle = done.map((claim) => completed(claim, JSON.stringify(holder)));
    const answer = await this.#store.queues.turn({
      queue: "q",
      holder,
      worker: `w-${holder}`,
      leaseMs: 60_000,
      settle,
      claim: 1,
      idle: true,
    });
    this.#hands.refused += answer.settled.filter((one) => one !== "settled").length;
    this.#take(answer.tasks);
  }

  /** A hand-off may be lost: what is listed and does not come is given back. */
  async giveBackUnknown(): Promise<void> {
    const { holder } = this;
    const { held } = await this.#store.queues.keep({ queue: "q", holders: [holder], leaseMs: LEASE_MS });
    await new Promise((resolve) => setTimeout(resolve, 50));
    const unknown = (held[0] ?? []).filter(({ token }) => !this.#hands.tokens.has(token));
    for (const { token } of unknown) this.#givenBack.add(token);
    const settle = unknown.map((claim) => ended(claim, "returned"));
    await this.#store.queues.turn({
      queue: "q",
      holder,
      worker: "w",
      leaseMs: 60_000,
      settle,
      claim: 0,
    });
  }
}

export function queueHandOff(harness: StoreHarness): void {
  siteCase(harness, "what an idle taker is handed is its own, and nobody else gets it", async (site) => {
    const [one, two, acting] = await openThree(site);
    const q = await declaredQueue(acting, { keyConcurrency: 2, concurrency: 3 });
    const hands = new Hands();
    const takers = [one, two, one].map((store, i) => new Taker(store, hands, `taker${i}`));
    const watches = takers.map((taker) => taker.watch());
    await Promise.all(watches.map(({ ready }) => ready));
    const work = async (taker: Taker) => {
      for (let i = 1; hands.working; i++) {
        await taker.turn();
        await new Promise((resolve) => setTimeout(resolve, i % 3));
        if (i % 50 === 0) await taker.giveBackUnknown();
      }
    };
    const submit = async () => {
      for (const i of range(0, TASKS)) {
        await q.submit(task(`t${i}`, i % 2 === 0 ? {} : { key: `k${i % 3}` }));
        if (i % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      }
      await until("all tasks completed", async () => (await q.stats()).counts.completed === TASKS, 15_000);
      hands.working = false;
    };
    await Promise.all([submit(), ...takers.map((taker) => work(taker))]).finally(
      () => (hands.working = false),
    );
    expect({ doubled: hands.doubled, refused: hands.refused }).toEqual({ doubled: [], refused: 0 });
    expect(await q.counts()).toEqual({ completed: TASKS });
    const records = await q.store.queues.page({ queue: "q", state: "completed", n: TASKS });
    expect(
      records.tasks.every(({ worker, result }) => worker === `w-${JSON.parse(result ?? "") as string}`),
    ).toBe(true);
    await Promise.all(watches.map((watch) => watch.close()));
  });

  siteCase(harness, "what is handed over is as whole as what is claimed", async (site) => {
    const clock = new HandClock();
    const [store, acting] = await Promise.all([site.open(clock.options), site.open(clock.options)]);
    const q = await declaredQueue(acting, { keyConcurrency: 1 });
    const { got, idle, close } = await waiting(store);
    await idle();
    const given = TEXTS.map((payload, i) =>
      task(`t${i} é 🚀`, {
        payload,
        ...(i % 3 === 0 ? { key: `k${i}:é` } : {}),
        ...(i % 4 === 0 ? { tick: { schedule: `s ${i} é`, at: 1_781_234_567_890 } } : {}),
        maxAttempts: 1 + i,
        timeoutMs: 1000 * i,
        ttlMs: i % 2 === 0 ? 60_000 : 0,
      }),
    );
    for (const [i, one] of given.entries()) {
      await q.submit(one);
      // Either it is handed over, or the next turn claims it.
      if (i % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 10));
      await idle();
    }
    await until("all are there", () => got.size === given.length);
    const held = new Map(((await q.keep("taker"))[0] ?? []).map(({ id, token }) => [id, token]));
    for (const { id, payload, key, tick, maxAttempts, timeoutMs } of given) {
      expect(got.get(id)).toEqual({
        id,
        payload,
        key: key ?? null,
        tick: tick ?? null,
        maxAttempts,
        timeoutMs,
        token: held.get(id),
        attempts: 0,
        crashes: 0,
        interruptions: 0,
        submittedAt: clock.ms,
      });
    }
    await close();
  });

  for (const [what, go] of [
    ["was lost", ({ q }: Idle) => q.lose(["taker"])],
    ["was not heard of for its lease", async ({ clock }: Idle) => clock.advance(60_000)],
    ["does not watch any more", ({ close }: Idle) => close()],
    ["has made a turn since that asks for nothing", ({ q }: Idle) => q.turn("taker", 0)],
    [
      "may wait no longer, by a call that keeps its claims",
      ({ q }: Idle) =>
        q.store.queues.keep({ queue: "q", holders: ["x", "taker"], leaseMs: LEASE_MS, idle: ["x"] }),
    ],
  ] as const)
    siteCase(harness, `nothing is handed to a taker that ${what}`, async (site) => {
      const clock = new HandClock();
      const [store, acting] = await Promise.all([site.open(clock.options), site.open(clock.options)]);
      const q = await declaredQueue(acting);
      const { got, idle, close } = await waiting(store);
      await idle();
      await go({ q, clock, close });
      await q.submit(task("a"), task("b"));
      expect(await q.claimIds("other", 5)).toEqual(["a", "b"]);
      expect(await q.keep("taker")).toEqual([[]]);
      expect(got.size).toBe(0);
      await close();
    });

  siteCase(harness, "hand-offs keep to limits, order and pauses", async (site) => {
    const clock = new HandClock();
    const [store, acting] = await Promise.all([site.open(clock.options), site.open(clock.options)]);
    const q = await declaredQueue(acting, { keyConcurrency: 1, concurrency: 2 });
    const { got, idle, close } = await waiting(store);
    await idle();
    await q.submit(task("later", { delayMs: 1000 }), task("low", { key: "k", priority: -1 }));
    await q.submit(task("high", { key: "k", priority: 5 }), task("x"), task("y"));
    for (let i = 0; i < 5; i++) await idle();
    await until("two are held", async () => (await q.counts()).active === 2);
    expect(await q.claim("other", 9)).toEqual([]);
    const all = [...got.values()];
    expect(all.filter(({ key }) => key === "k").length).toBeLessThanOrEqual(1);
    expect(got.has("later")).toBe(false);
    expect(await q.counts()).toEqual({ active: 2, waiting: 2, scheduled: 1 });
    await close();
  });
}

interface Idle {
  q: Queue;
  clock: HandClock;
  close: () => Promise<void>;
}

/** A taker that collects what its watch and its turns bring. */
async function waiting(store: Store) {
  const got = new Map<string, ClaimedTask>();
  const take = (tasks: readonly ClaimedTask[]) => {
    for (const claim of tasks) got.set(claim.id, claim);
  };
  const watch = store.queues.watch({ queue: "q", taker: "taker" }, { onTasks: take });
  await watch.ready;
  return {
    got,
    idle: async () => {
      const turn = await store.queues.turn({
        queue: "q",
        holder: "taker",
        worker: "w",
        leaseMs: 60_000,
        settle: [],
        claim: 1,
        idle: true,
      });
      take(turn.tasks);
    },
    close: () => watch.close(),
  };
}
