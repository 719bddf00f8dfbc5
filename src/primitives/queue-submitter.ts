import type { QueueContract } from "../contracts/queue.ts";
import { FleetError } from "../errors.ts";
import type { NewTask } from "../protocol/task.ts";
import type { QueueStore, SubmitOutcome, SubmitResult } from "../store/queue-store.ts";
import { Gather } from "./gather.ts";
import { settingsOf } from "./queue-settings.ts";

const MAX_BYTES_PER_CALL = 1024 * 1024;
const TASKS_PER_CALL = 500;
/** What a task counts for at least, so that calls are bounded by bytes and by tasks at once. */
const MIN_WEIGHT = Math.ceil(MAX_BYTES_PER_CALL / TASKS_PER_CALL);
/** 128 MiB of payloads, or 64 000 small tasks. */
const MAX_WAITING_BYTES = 128 * 1024 * 1024;
/** A store may be emptied between the declaration and the submission; but not time after time. */
const DECLARE_TRIES = 5;

/** One call of a user: a list that is accepted as a whole or not at all. */
interface Submission {
  tasks: readonly NewTask[];
  weight: number;
  result?: SubmitResult | undefined;
}

/**
 * One queue's way in, shared by all slots of a process. Lists of one tick travel in one call, and one call is under way at a time; a
 * lone caller waits for nothing. Tasks bear ids, so a repeat after a lost answer is harmless.
 *
 * The queue's settings are kept in the store. Whoever submits writes them only where there are none: the owner, who runs the tasks,
 * has the say.
 */
export class QueueSubmitter {
  readonly #store: QueueStore;
  readonly #contract: QueueContract;
  readonly #fence: (() => void) | undefined;
  readonly #gather: Gather<Submission>;

  constructor(store: QueueStore, contract: QueueContract, fence?: () => void) {
    this.#store = store;
    this.#contract = contract;
    this.#fence = fence;
    this.#gather = new Gather({
      send: (submissions) => this.#send(submissions),
      sizeOf: ({ weight }) => weight,
      maxItems: TASKS_PER_CALL,
      maxBytes: TASKS_PER_CALL * MIN_WEIGHT,
      maxWaitingBytes: MAX_WAITING_BYTES,
    });
  }

  /** Per task its id, or that of the one that stands in for it. Throws `FLEET_QUEUE_FULL`. */
  async submit(tasks: readonly NewTask[]): Promise<{ id: string; outcome: SubmitOutcome }[]> {
    const submission: Submission = { tasks, weight: weightOf(tasks) };
    await this.#gather.add(submission);
    const result = submission.result as SubmitResult;
    if (result.outcome === "accepted") return result.tasks;
    const { length, maxLength } = result;
    throw new FleetError(
      "FLEET_QUEUE_FULL",
      `queue "${this.#contract.name}" is full: ${length} tasks wait, maxLength is ${maxLength}; ${tasks.length === 1 ? "the task was not" : `none of ${tasks.length} tasks was`} submitted. Wait and try again, submit fewer, add slots, or raise maxLength`,
      { retryable: true },
    );
  }

  flushed(): Promise<void> {
    return this.#gather.flushed();
  }

  async #send(submissions: readonly Submission[]): Promise<void> {
    const queue = this.#contract.name;
    const lists = submissions.map(({ tasks }) => tasks);
    for (let tries = 0; tries < DECLARE_TRIES; tries++) {
      this.#fence?.();
      const answer = await this.#store.submit({ queue, lists });
      if (answer.outcome === "done") {
        for (const [at, submission] of submissions.entries()) submission.result = answer.lists[at];
        return;
      }
      await this.#store.declare({ queue, settings: settingsOf(this.#contract), as: "guest" });
    }
    throw new FleetError(
      "FLEET_STORE_BUSY",
      `queue "${queue}": its settings were removed from the store again and again; nothing was submitted`,
      { retryable: true },
    );
  }
}

function weightOf(tasks: readonly NewTask[]): number {
  let weight = 0;
  for (const { payload } of tasks) weight += Math.max(payload.length, MIN_WEIGHT);
  return weight;
}
