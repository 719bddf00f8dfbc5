import type { ClaimedTask, NewTask, Settlement, TaskRecord, TaskState } from "../../protocol/task.ts";
import type { QueueSettings, QueueStats, SubmitOutcome, TurnResult } from "../queue-store.ts";
import type { Store } from "../store.ts";

export const SETTINGS: QueueSettings = {
  maxLength: 0,
  maxPayloadBytes: 262_144,
  concurrency: 0,
  keyConcurrency: 0,
  crashLimit: 3,
  keepMs: 3_600_000,
  keepCount: 10_000,
  keepFailedMs: 30 * 86_400_000,
  keepFailedCount: 100_000,
};

export const LEASE_MS = 10_000;

/** One queue as seen by one connection: the port's calls with what most cases leave alone filled in. */
export class Queue {
  readonly store: Store;
  readonly queue: string;

  constructor(store: Store, queue = "q") {
    this.store = store;
    this.queue = queue;
  }

  /** Submits one list that must be accepted; answers the outcome of each task. */
  async submit(...tasks: NewTask[]): Promise<SubmitOutcome[]> {
    return (await this.submitted(...tasks)).map(({ outcome }) => outcome);
  }

  async submitted(...tasks: NewTask[]): Promise<{ id: string; outcome: SubmitOutcome }[]> {
    const answer = await this.store.queues.submit({ queue: this.queue, lists: [tasks] });
    if (answer.outcome !== "done" || answer.lists[0]?.outcome !== "accepted")
      throw new Error(`not accepted: ${JSON.stringify(answer)}`);
    return answer.lists[0].tasks;
  }

  turn(holder: string, claim: number, settle: readonly Settlement[] = []): Promise<TurnResult> {
    const { queue } = this;
    return this.store.queues.turn({ queue, holder, worker: `w-${holder}`, leaseMs: LEASE_MS, settle, claim });
  }

  async claim(holder: string, n: number): Promise<ClaimedTask[]> {
    return (await this.turn(holder, n)).tasks;
  }

  async claimIds(holder: string, n: number): Promise<string[]> {
    return (await this.claim(holder, n)).map(({ id }) => id);
  }

  async claimOne(holder: string): Promise<ClaimedTask> {
    const [task] = await this.claim(holder, 1);
    if (task === undefined) throw new Error(`nothing to claim for ${holder}`);
    return task;
  }

  /** Whoever settles: claims are told by their token, not by who says so. */
  async settle(...settlements: Settlement[]): Promise<("settled" | "lease-lost")[]> {
    return (await this.turn("settler", 0, settlements)).settled;
  }

  async get(id: string): Promise<TaskRecord> {
    const record = await this.store.queues.get({ queue: this.queue, id });
    if (record === undefined) throw new Error(`task ${id} is not there`);
    return record;
  }

  async state(id: string): Promise<TaskState | undefined> {
    return (await this.store.queues.get({ queue: this.queue, id }))?.state;
  }

  async stats(): Promise<QueueStats> {
    const stats = await this.store.queues.stats({ queue: this.queue });
    if (stats === undefined) throw new Error(`queue ${this.queue} was never declared`);
    return stats;
  }

  /** How many tasks are in each state that has some. */
  async counts(): Promise<Partial<Record<TaskState, number>>> {
    const { counts } = await this.stats();
    return Object.fromEntries(Object.entries(counts).filter(([, n]) => n > 0));
  }

  /** Sweeps until nothing is left to do. */
  async sweep(): Promise<{ reclaimed: number; expired: number; forgotten: number }> {
    const sum = { reclaimed: 0, expired: 0, forgotten: 0 };
    for (;;) {
      const { more, ...swept } = await this.store.queues.sweep({ queue: this.queue });
      sum.reclaimed += swept.reclaimed;
      sum.expired += swept.expired;
      sum.forgotten += swept.forgotten;
      if (!more) return sum;
    }
  }

  async keep(...holders: string[]): Promise<{ id: string; token: string; cancelling: boolean }[][]> {
    const { queue } = this;
    return (await this.store.queues.keep({ queue, holders, leaseMs: LEASE_MS })).held;
  }

  lose(holders: string[], crashed: string[] = []): Promise<{ crashed: number; interrupted: number }> {
    return this.store.queues.lose({ queue: this.queue, holders, crashed, error: "process died" });
  }

  cancel(...ids: string[]): Promise<string[]> {
    return this.store.queues.cancel({ queue: this.queue, ids });
  }

  retry(...ids: string[]): Promise<string[]> {
    return this.store.queues.retry({ queue: this.queue, ids });
  }

  /** Ids of all tasks of one state, over all pages. */
  async ids(state: TaskState, n = 100): Promise<string[]> {
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const more = cursor === undefined ? {} : { cursor };
      const page = await this.store.queues.page({ queue: this.queue, state, n, ...more });
      ids.push(...page.tasks.map(({ id }) => id));
      cursor = page.next;
    } while (cursor !== undefined);
    return ids;
  }
}

export async function declaredQueue(
  store: Store,
  settings: Partial<QueueSettings> = {},
  queue = "q",
): Promise<Queue> {
  await store.queues.declare({ queue, settings: { ...SETTINGS, ...settings }, as: "owner" });
  return new Queue(store, queue);
}

export function task(id: string, more: Partial<NewTask> = {}): NewTask {
  return {
    id,
    payload: JSON.stringify({ id }),
    delayMs: 0,
    priority: 0,
    maxAttempts: 5,
    timeoutMs: 0,
    ttlMs: 0,
    ...more,
  };
}

/** Tasks of these ids that differ in nothing else. */
export const tasks = (ids: readonly string[], more: Partial<NewTask> = {}) => ids.map((id) => task(id, more));

type Claim = Pick<ClaimedTask, "id" | "token">;

export function completed({ id, token }: Claim, result: string | null = null): Settlement {
  return { id, token, outcome: "completed", result };
}

export function failed(
  { id, token }: Claim,
  more: Partial<Extract<Settlement, { outcome: "failed" }>> = {},
): Settlement {
  const usual = { reason: "error" as const, error: "boom", retryInMs: 0, final: false };
  return { ...usual, ...more, id, token, outcome: "failed" };
}

export function ended({ id, token }: Claim, outcome: "cancelled" | "interrupted" | "returned"): Settlement {
  return { id, token, outcome };
}

export function crashed({ id, token }: Claim, error = "crash"): Settlement {
  return { id, token, outcome: "crashed", error };
}

/** Tokens are numbers in text, of more digits than a double can tell apart. */
export function isGrowing(tokens: readonly string[]): boolean {
  return tokens.every((token, i) => i === 0 || BigInt(token) > BigInt(tokens[i - 1] as string));
}
