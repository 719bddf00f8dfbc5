import { messageOf } from "../errors.ts";
import { Throttle, type Log } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { NewTask, TaskState } from "../protocol/task.ts";
import type { Refill } from "../store/pool-store.ts";
import type { Store } from "../store/store.ts";
import { isOwnFault } from "./damaged.ts";
import { missingPlaces } from "./refill-need.ts";

/** How often pools are counted. */
const ROUND_MS = 1000;
/** How often wishes are read anew. */
const REFRESH_MS = 2000;
/** Most tasks that are looked at in one round; the others take their turn in the next. */
const MOST_LOOKS = 100;
/** What a leader before has left is looked for among so many unfinished tasks of each state. */
const PAGE = 500;
const MOST_PAGES = 20;
const UNFINISHED = ["waiting", "scheduled", "active"] as const satisfies readonly TaskState[];

export interface RefillsParts {
  store: Store;
  /** Whether this process leads the fleet at present. */
  leading: () => boolean;
  log: Log;
  /** How often pools are counted; default 1000. Tests shorten it. */
  roundMs?: number;
}

/** One wish, and what is being done about it. */
interface Wish {
  pool: string;
  refill: Refill;
  /** By place: the task that is under way. */
  tasks: Map<number, string>;
  /** Whether what is under way is known: a new leader looks first. */
  known: boolean;
  failures: number;
  failedAt: number;
  /** How many items had been put into the pool in all, as of the last look. */
  putBefore: number;
  /** Of those how many no task has been credited with yet. */
  credit: number;
}

/**
 * Keeps pools filled, in whichever process leads: counts what is there and what is under way, and submits the difference. So there is at
 * most one task per missing item, however many wait for one. A task bears a `dedupeKey` for its place, so two that take themselves for
 * the leader at the change do not submit twice.
 */
export class Refills {
  readonly #parts: RefillsParts;
  readonly #trouble = new Throttle(30_000);
  #wishes = new Map<string, Wish>();
  #readAt = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #round: Promise<void> | undefined;
  #running = false;

  constructor(parts: RefillsParts) {
    this.#parts = parts;
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#sleep();
  }

  /** Waits for the round under way. */
  async stop(): Promise<void> {
    this.#running = false;
    clearTimeout(this.#timer);
    await this.#round;
  }

  #sleep(): void {
    if (!this.#running) return;
    this.#timer = setTimeout(() => {
      this.#round = this.#turn().finally(() => this.#sleep());
    }, this.#parts.roundMs ?? ROUND_MS);
  }

  async #turn(): Promise<void> {
    if (!this.#parts.leading()) {
      // What others have submitted meanwhile is not known here.
      this.#wishes.clear();
      this.#readAt = Number.NEGATIVE_INFINITY;
      return;
    }
    try {
      await this.#refresh();
    } catch (error) {
      this.#say("wishes for pools to be refilled could not be read; trying again", { error });
    }
    for (const wish of this.#wishes.values()) {
      try {
        await this.#look(wish);
      } catch (error) {
        this.#say("a pool could not be refilled; trying again", { pool: wish.pool, error });
      }
    }
  }

  async #refresh(): Promise<void> {
    const { store, roundMs } = this.#parts;
    if (monotonicMs() - this.#readAt < Math.min(REFRESH_MS, roundMs ?? REFRESH_MS)) return;
    const wishes = new Map<string, Wish>();
    for (const pool of await store.pools.list()) {
      for (const refill of await this.#wishesFor(pool)) {
        const key = `${pool} ${JSON.stringify(refill.where)}`;
        const before = this.#wishes.get(key);
        wishes.set(
          key,
          before?.refill.queue === refill.queue
            ? { ...before, refill }
            : {
                pool,
                refill,
                tasks: new Map(),
                known: false,
                failures: 0,
                failedAt: 0,
                putBefore: 0,
                credit: 0,
              },
        );
      }
    }
    this.#wishes = wishes;
    this.#readAt = monotonicMs();
  }

  /** None where they cannot be read. */
  async #wishesFor(pool: string): Promise<Refill[]> {
    try {
      return await this.#parts.store.pools.refills({ pool });
    } catch (error) {
      if (!isOwnFault(error)) throw error;
      this.#say("wishes for a pool to be refilled cannot be read", { pool, error });
      return [];
    }
  }

  async #look(wish: Wish): Promise<void> {
    const { pools } = this.#parts.store;
    const { pool, refill } = wish;
    if (!wish.known) await this.#find(wish);
    await this.#follow(wish);
    // Counted after the tasks: an item whose task has just ended counts once at least.
    const counts = await pools.count({ pool, where: refill.where });
    const places = missingPlaces(
      {
        count: counts.free + counts.held + counts.cooling,
        below: refill.below,
        outstanding: new Set(wish.tasks.keys()),
        failures: wish.failures,
        failedAt: wish.failedAt,
      },
      monotonicMs(),
    );
    if (places.length > 0 && this.#parts.leading()) await this.#submit(wish, places);
  }

  /** What a leader before has submitted, and is under way. */
  async #find(wish: Wish): Promise<void> {
    const { queues } = this.#parts.store;
    const { queue, below } = wish.refill;
    const places = new Map(Array.from({ length: below }, (_, place) => [dedupeKey(wish, place), place]));
    for (const state of UNFINISHED) {
      let cursor: string | undefined;
      for (let pages = 0; pages < MOST_PAGES; pages++) {
        const page = await queues.page({
          queue,
          state,
          n: PAGE,
          ...(cursor === undefined ? {} : { cursor }),
        });
        for (const { id, dedupeKey: key } of page.tasks) {
          const place = key === null ? undefined : places.get(key);
          if (place !== undefined) wish.tasks.set(place, id);
        }
        cursor = page.next;
        if (cursor === undefined) break;
      }
    }
    wish.putBefore = await this.#putSoFar(wish.pool);
    wish.known = true;
  }

  /** Takes note of tasks that have ended. */
  async #follow(wish: Wish): Promise<void> {
    const { queues } = this.#parts.store;
    let [ended, completed] = [0, 0];
    for (const [place, id] of [...wish.tasks].slice(0, MOST_LOOKS)) {
      const task = await queues.get({ queue: wish.refill.queue, id });
      wish.tasks.delete(place);
      if (task !== undefined && UNFINISHED.some((state) => state === task.state)) {
        // To the back of the row: a Map keeps the order of insertion.
        wish.tasks.set(place, id);
        continue;
      }
      ended += 1;
      if (task?.state !== "failed" && task?.state !== "cancelled") completed += 1;
    }
    if (ended === 0) return;
    // A task that has completed and put nothing in is as good as failed: the next would do the same at once.
    const put = await this.#putSoFar(wish.pool);
    const credit = Math.min(wish.refill.below, wish.credit + put - wish.putBefore);
    wish.credit = Math.max(0, credit - completed);
    wish.putBefore = put;
    if (completed > 0 && credit >= completed) {
      wish.failures = 0;
      return;
    }
    wish.failures += 1;
    wish.failedAt = monotonicMs();
    this.#say("a pool is short of items, and tasks to refill it bring none", {
      pool: wish.pool,
      queue: wish.refill.queue,
      failures: wish.failures,
    });
  }

  async #submit(wish: Wish, places: readonly number[]): Promise<void> {
    const { store } = this.#parts;
    const { queue } = wish.refill;
    if (wish.tasks.size === 0) {
      // What others have put in meanwhile is nothing that these tasks bring.
      wish.putBefore = await this.#putSoFar(wish.pool);
      wish.credit = 0;
    }
    const answer = await store.queues.submit({
      queue,
      lists: places.map((place) => [taskOf(wish, place)]),
    });
    // Its settings were left with the wish; who has lost them leaves them again.
    if (answer.outcome === "undeclared") return;
    const submitted = answer.lists.filter(
      (list) => list.outcome === "accepted" && list.tasks[0]?.outcome === "submitted",
    );
    if (submitted.length > 0) this.#observe(wish, submitted.length);
    for (const [at, result] of answer.lists.entries()) {
      const [task] = result.outcome === "accepted" ? result.tasks : [];
      if (task !== undefined) wish.tasks.set(places[at] as number, task.id);
      else this.#say("a pool is not refilled: the queue is full", { pool: wish.pool, queue });
    }
  }

  /** For the graph. Not waited for, and no matter if it fails. */
  #observe({ pool, refill: { queue } }: Wish, count: number): void {
    const edge = { direction: "refill", name: queue, count } as const;
    this.#parts.store.edges
      .observe({ from: { kind: "pool", name: pool }, edges: [edge] })
      .catch(() => undefined);
  }

  async #putSoFar(pool: string): Promise<number> {
    return (await this.#parts.store.pools.stats({ pool }))?.totals.put ?? 0;
  }

  #say(message: string, { error, ...fields }: Record<string, unknown>): void {
    this.#trouble.pass(
      monotonicMs(),
      () =>
        this.#parts.log.warn(message, {
          ...fields,
          ...(error === undefined ? {} : { error: messageOf(error) }),
        }),
      message,
    );
  }
}

/** The task for one missing item. */
function taskOf(wish: Wish, place: number): NewTask {
  const { payload, maxAttempts, timeoutMs } = wish.refill;
  return {
    id: uuidv7(),
    payload,
    delayMs: 0,
    priority: 0,
    maxAttempts,
    timeoutMs,
    ttlMs: 0,
    dedupe: { key: dedupeKey(wish, place), onDuplicate: "ignore", windowMs: 0 },
  };
}

function dedupeKey({ pool, refill }: Pick<Wish, "pool" | "refill">, place: number): string {
  return `refill:${pool}:${JSON.stringify(refill.where)}:${place}`;
}
