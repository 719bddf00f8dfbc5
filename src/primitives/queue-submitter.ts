import type { QueueContract } from "../contracts/queue.ts";
import { FleetError } from "../errors.ts";
import type { NewTask } from "../protocol/task.ts";
import type { QueueStore, SubmitOutcome, SubmitResult } from "../store/queue-store.ts";
import { Gather } from "./gather.ts";
import { repeatLost } from "./repeat-lost.ts";
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
  /** Throws where its user must have no effect any more. */
  fence: (() => void) | undefined;
  refused: Error | undefined;
  result: SubmitResult | undefined;
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
  readonly #gather: Gather<Submission>;

  constructor(store: QueueStore, contract: QueueContract) {
    this.#store = store;
    this.#contract = contract;
    this.#gather = new Gather({
      send: (submissions) => this.#send(submissions),
      sizeOf: ({ weight }) => weight,
      maxItems: TASKS_PER_CALL,
      maxBytes: TASKS_PER_CALL * MIN_WEIGHT,
      maxWaitingBytes: MAX_WAITING_BYTES,
    });
  }

  /**
   * Per task its id, or that of the one that stands in for it. Throws `FLEET_QUEUE_FULL`, and what `fence` throws: it is asked whenever the
   * tasks are about to be sent, also once more after a lost answer.
   */
  async submit(
    tasks: readonly NewTask[],
    fence?: () => void,
  ): Promise<{ id: string; outcome: SubmitOutcome }[]> {
    const submission: Submission = {
      tasks,
      weight: weightOf(tasks),
      fence,
      refused: undefined,
      result: undefined,
    };
    await this.#gather.add(submission);
    if (submission.refused !== undefined) throw submission.refused;
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
    for (let tries = 0; tries < DECLARE_TRIES; tries++) {
      const answer = await repeatLost(async () => {
        const sent = allowed(submissions);
        if (sent.length === 0) return "none left";
        const given = await this.#store.submit({ queue, lists: sent.map(({ tasks }) => tasks) });
        if (given.outcome !== "done") return "undeclared";
        for (const [at, submission] of sent.entries()) submission.result = given.lists[at];
        return "done";
      });
      if (answer !== "undeclared") return;
      await this.#store.declare({ queue, settings: settingsOf(this.#contract), as: "guest" });
    }
    throw new FleetError(
      "FLEET_STORE_BUSY",
      `queue "${queue}": its settings were removed from the store again and again; nothing was submitted`,
      { retryable: true },
    );
  }
}

/** What may be sent of these. The others of the same call are not held up by one whose slot has lost its lease. */
function allowed(submissions: readonly Submission[]): Submission[] {
  return submissions.filter((submission) => {
    try {
      submission.fence?.();
      return true;
    } catch (error) {
      submission.refused = error as Error;
      return false;
    }
  });
}

function weightOf(tasks: readonly NewTask[]): number {
  let weight = 0;
  for (const { payload } of tasks) weight += Math.max(payload.length, MIN_WEIGHT);
  return weight;
}
