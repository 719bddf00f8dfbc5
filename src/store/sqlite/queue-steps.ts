import type { OpenQueue, QueueBook } from "./queue-book.ts";

/** How calls come by their queue: opened once, and where the call may change it, written back once. */
export interface QueueSteps {
  /** Inside a write transaction; `otherwise` answers for a queue that was never declared. */
  change<T>(name: string, work: (queue: OpenQueue) => T, otherwise: () => T): T;
  look<T>(name: string, work: (queue: OpenQueue) => T, otherwise: () => T): T;
}

export function createQueueSteps(book: QueueBook): QueueSteps {
  return {
    change(name, work, otherwise) {
      const queue = book.open(name);
      if (queue === undefined) return otherwise();
      const result = work(queue);
      book.save(queue);
      return result;
    },
    look(name, work, otherwise) {
      const queue = book.open(name);
      return queue === undefined ? otherwise() : work(queue);
    },
  };
}
