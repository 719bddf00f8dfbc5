import type { QueueStore, TurnResult } from "../queue-store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import { type OpenQueue, type QueueBook, readyCount } from "./queue-book.ts";
import { claimTasks } from "./queue-claims.ts";
import { heldBy, lose, renew } from "./queue-holders.ts";
import { settle } from "./queue-settle.ts";
import type { QueueSteps } from "./queue-steps.ts";
import { AT_ONCE, hasExpired, isTidy, nextDueAt, reclaimExpired, tidy } from "./queue-sweep.ts";
import type { Writer } from "./writer.ts";

type TurnArgs = Parameters<QueueStore["turn"]>[0];

const NO_TASKS = { ready: 0, nextDueAt: null };

/** What holders of claims call. Where nothing is to be done, `turn` and `keep` only read, and wait for no lock. */
export function createQueueTurns(parts: {
  db: Database;
  clock: Clock;
  writer: Writer;
  book: QueueBook;
  steps: QueueSteps;
}): Pick<QueueStore, "turn" | "keep" | "lose"> {
  const { db, clock, writer, book, steps } = parts;

  const outlook = (queue: OpenQueue) => ({ ready: readyCount(queue), nextDueAt: nextDueAt(db, queue) });

  function turn(queue: OpenQueue, { settle: settlements, claim, ...claimant }: TurnArgs): TurnResult {
    const settled = settlements.map((settlement) => settle(db, queue, settlement));
    const done = claim > 0 ? tidy(db, queue) : undefined;
    // While more may be past its time to live than one step ends, nothing is claimed: it would be taken for alive.
    const clean = done !== undefined && done.expired < AT_ONCE;
    const tasks = clean ? claimTasks(parts, queue, claimant, claim) : [];
    return { settled, tasks, now: queue.now, ...outlook(queue) };
  }

  return {
    turn(args) {
      const { settle: settlements, claim } = args;
      const nothing = (): TurnResult => {
        return { settled: settlements.map(() => "lease-lost"), tasks: [], now: clock(), ...NO_TASKS };
      };
      const idle = (queue: OpenQueue) => {
        if (claim > 0 && (queue.claimable || !isTidy(db, queue))) return undefined;
        return { settled: [], tasks: [], now: queue.now, ...outlook(queue) };
      };
      return writer.write(() => steps.change(args.queue, (queue) => turn(queue, args), nothing), {
        weight: Math.max(1, settlements.length + claim),
        bytes: settlements.reduce((sum, one) => sum + ("result" in one ? (one.result?.length ?? 0) : 0), 0),
        shortcut: () => (settlements.length > 0 ? undefined : steps.look(args.queue, idle, nothing)),
      });
    },

    keep({ queue: name, holders, leaseMs }) {
      const answer = (queue: OpenQueue) => {
        const at = String(book.tokenBound(name, queue));
        return { held: heldBy(db, queue.id, holders), at, ...outlook(queue) };
      };
      const renewed = (queue: OpenQueue) => {
        renew(db, queue, holders, leaseMs);
        reclaimExpired(db, queue);
        return answer(queue);
      };
      const nothing = () => ({ held: holders.map(() => []), at: String(book.tokenBound(name)), ...NO_TASKS });
      return writer.write(() => steps.change(name, renewed, nothing), {
        shortcut() {
          const idle = (queue: OpenQueue) => (hasExpired(db, queue) ? undefined : answer(queue));
          const found = steps.look(name, idle, nothing);
          return found?.held.every((claims) => claims.length === 0) === true ? found : undefined;
        },
      });
    },

    lose({ queue: name, ...lost }) {
      const nothing = () => ({ crashed: 0, interrupted: 0 });
      return writer.write(() => steps.change(name, (queue) => lose(db, queue, lost), nothing));
    },
  };
}
