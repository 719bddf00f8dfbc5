import { FleetError } from "../../errors.ts";
import { type CallOptions, Calls } from "./calls.ts";
import { unanswered } from "./errors.ts";
import type { Route } from "./keep-connected.ts";
import { Node } from "./node.ts";
import { SentinelRoute } from "./sentinel.ts";
import type { Address, Target } from "./target.ts";

/**
 * The way to the server or servers. Rules of a call:
 *
 * - It has one deadline, also when it has to wait for a connection, is sent again, or is redirected.
 * - With no connection it waits for one until its deadline and then fails, not sent, with `FLEET_STORE_UNAVAILABLE`.
 * - Once sent and then without an answer, it is sent again only when `repeatable`; else it fails with outcome "unknown".
 * - There are never more than so many under way: past that it fails at once with `FLEET_STORE_BUSY`.
 */
export interface Link {
  readonly target: Target;
  call(args: readonly string[], options: CallOptions): Promise<unknown>;
  /** Every server that holds keys: what is called through it goes there, whatever the key. */
  masters(): Promise<MasterCall[]>;
  /**
   * Where a subscriber goes. On a cluster pub/sub reaches every node, but the others a moment later: what was published
   * just before a subscription could still arrive after it. So it is the node that publishes `key`'s messages; another one
   * at every second attempt, in case that one is down.
   */
  subscriberRoute(key: string): Route;
  /** Resolves when calls can be served for the first time; fails within the deadline. */
  ready(): Promise<void>;
  /** See the port's `letGo`. */
  letGo(): void;
  /** Calls `listener` each time that a lost connection is back. */
  onRestored(listener: () => void): void;
  close(): Promise<void>;
}

export type MasterCall = (args: readonly string[], repeatable: boolean) => Promise<unknown>;

export interface LinkOptions {
  target: Target;
  deadlineMs: number;
  log: (level: "info" | "warn", message: string) => void;
}

/** Waiting longer than this for calls under way helps nobody who closes. */
const CLOSE_MS = 1000;

/** To one server: the one at the address, or the one that the sentinels name. */
export function singleLink({ target, deadlineMs, log }: LinkOptions): Link {
  const calls = new Calls(target, deadlineMs);
  const restored = new Set<() => void>();
  const opening = firstTime(target, deadlineMs, calls);
  const address = target.addresses[0] as Address;
  const sentinels =
    target.sentinel === undefined ? undefined : new SentinelRoute({ target, deadlineMs, log });
  const node: Node = new Node({
    target,
    address,
    route: sentinels,
    deadlineMs,
    calls,
    log,
    submit: (call) => node.send(call),
    onUp: (_, first) => {
      for (const call of calls.waiting()) node.send(call);
      if (first) opening.succeed();
      else for (const listener of restored) listener();
    },
    onFailure: (_, error) => opening.failed(error),
  });
  node.start();

  const link: Link = {
    target,
    call: (args, options) => calls.make(args, options, (call) => node.send(call)),
    masters: () => Promise.resolve([(args, repeatable) => link.call(args, { repeatable, key: "" })]),
    subscriberRoute: () => sentinels ?? { address: () => address },
    ready: () => opening.done,
    letGo: () => calls.letGo(),
    onRestored: (listener) => void restored.add(listener),
    close: async () => {
      sentinels?.close();
      await closeAll(calls, [node]);
    },
  };
  return link;
}

/** Refuses new calls, gives those that were sent a moment to settle, and closes. */
export async function closeAll(calls: Calls, nodes: Iterable<Node>): Promise<void> {
  calls.close();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const enough = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSE_MS)));
  await Promise.race([calls.idle(), enough]);
  clearTimeout(timer);
  for (const node of nodes) node.close();
}

/**
 * The outcome of the first attempts to connect. What waiting cannot mend (a wrong password, an unsuitable server) fails at once;
 * anything else may still come up until the deadline.
 */
export function firstTime(target: Target, deadlineMs: number, calls: Calls) {
  let succeed: () => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const done = new Promise<void>((resolve, reject) => {
    succeed = resolve;
    fail = reject;
  });
  done.catch(() => undefined);
  const timer = setTimeout(() => fail(unanswered(target, calls.trouble.text, false)), deadlineMs);
  void done.finally(() => clearTimeout(timer)).catch(() => undefined);
  return {
    done,
    succeed: () => succeed(),
    failed: (error: FleetError) => {
      const final = error.code !== "FLEET_STORE_UNAVAILABLE";
      const text = error.message.replace(`no connection to ${target.shown}: `, "");
      const again = () => new FleetError(error.code, error.message, { retryable: error.retryable });
      calls.trouble = { text, ...(final ? { error: again } : {}) };
      if (final) fail(error);
    },
  };
}
