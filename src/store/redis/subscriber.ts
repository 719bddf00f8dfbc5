/**
 * All subscriptions of a store, over one connection of its own: a connection that subscribes does nothing else. It is made at the
 * first subscription. What is subscribed is kept here and not in the client, so after any number of failed reconnects it is all
 * subscribed again before anybody is told that the link is back.
 */
import { monotonicMs } from "../../internal/timers.ts";
import type { Connection } from "./connection.ts";
import { closed, unanswered } from "./errors.ts";
import { KeptConnection } from "./keep-connected.ts";
import type { Link, LinkOptions } from "./link.ts";

export interface Listener {
  onMessage: (text: string, channel: string) => void;
  /** The link was lost and is back: something may have been missed. */
  onRestored?: () => void;
}

export interface Subscription {
  /** Resolves once the server has confirmed it; fails when that takes longer than the deadline, but goes on trying. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

/** One channel or pattern, for all who listen to it. */
interface Topic {
  kind: "channel" | "pattern";
  name: string;
  listeners: Set<Listener>;
  deliver: (text: string, channel: string) => void;
  confirmed: boolean;
  waiting: Set<Waiter>;
}

interface Waiter {
  resolve: () => void;
  reject: (error: Error) => void;
}

export class Subscriber {
  readonly #options: LinkOptions;
  readonly #topics = new Map<string, Topic>();
  readonly #kept: KeptConnection;
  #closed = false;
  #wasUp = false;
  #trouble = "not connected yet";

  /** `home`: the key whose messages must not arrive late; see `Link.subscriberRoute`. */
  constructor(link: Link, options: LinkOptions, home: string) {
    this.#options = options;
    this.#kept = new KeptConnection({
      settings: { target: options.target, deadlineMs: options.deadlineMs, name: "fleet-subscriber" },
      route: link.subscriberRoute(home),
      onUp: (connection) => this.#resubscribe(connection),
      onLost: (_, why) => {
        this.#trouble = why;
        for (const topic of this.#topics.values()) topic.confirmed = false;
      },
      onFailure: (error) => (this.#trouble = error.message),
    });
  }

  listen(kind: Topic["kind"], name: string, listener: Listener): Subscription {
    const { target } = this.#options;
    if (this.#closed) throw closed(target);
    const id = `${kind} ${name}`;
    const known = this.#topics.get(id);
    const topic = known ?? newTopic(kind, name);
    topic.listeners.add(listener);
    const ready = this.#confirmation(topic);
    if (known === undefined) {
      this.#topics.set(id, topic);
      const connection = this.#wasUp ? this.#kept.current : undefined;
      if (connection === undefined) this.#kept.start();
      else void this.#subscribe(connection, [topic]);
    }
    return {
      ready,
      close: async () => {
        if (!topic.listeners.delete(listener) || topic.listeners.size > 0) return;
        if (this.#topics.get(id) === topic) this.#topics.delete(id);
        for (const waiter of topic.waiting) waiter.reject(closed(target));
        await this.#unsubscribe(topic);
      },
    };
  }

  close(): void {
    this.#closed = true;
    for (const topic of this.#topics.values()) {
      for (const waiter of topic.waiting) waiter.reject(closed(this.#options.target));
    }
    this.#topics.clear();
    this.#kept.close();
  }

  #confirmation(topic: Topic): Promise<void> {
    if (topic.confirmed) return Promise.resolve();
    const { target, deadlineMs } = this.#options;
    const end = monotonicMs() + deadlineMs;
    const ready = new Promise<void>((resolve, reject) => {
      const settle = (how: () => void) => {
        clearTimeout(timer);
        topic.waiting.delete(waiter);
        how();
      };
      const waiter: Waiter = {
        resolve: () => settle(resolve),
        reject: (error) => settle(() => reject(error)),
      };
      const timer = setTimeout(
        () => waiter.reject(unanswered(target, this.#trouble, false)),
        Math.max(0, end - monotonicMs()),
      );
      topic.waiting.add(waiter);
    });
    // Whoever does not wait for it is not to be ended by it.
    ready.catch(() => undefined);
    return ready;
  }

  /** A new connection is up: subscribes everything on it, then says so to those who were there before. */
  async #resubscribe(connection: Connection): Promise<void> {
    const restored = this.#wasUp;
    this.#wasUp = true;
    const all = [...this.#topics.values()];
    const before = restored ? all.flatMap((topic) => [...topic.listeners]) : [];
    await this.#subscribe(connection, all);
    if (restored && connection.isUsable) this.#options.log("info", "subscriptions are active again");
    for (const listener of before) listener.onRestored?.();
  }

  async #subscribe(connection: Connection, topics: readonly Topic[]): Promise<void> {
    const timer = setTimeout(
      () => connection.drop("a subscription was not confirmed within the deadline"),
      this.#options.deadlineMs,
    );
    try {
      await Promise.all(
        topics.map(async (topic) => {
          if (topic.kind === "channel") await connection.subscribe(topic.name, topic.deliver);
          else await connection.psubscribe(topic.name, topic.deliver);
          if (!connection.isUsable) return;
          topic.confirmed = true;
          for (const waiter of topic.waiting) waiter.resolve();
        }),
      );
    } catch {
      // The next connection subscribes it again.
      connection.drop("a subscription failed");
    } finally {
      clearTimeout(timer);
    }
  }

  async #unsubscribe({ kind, name, deliver }: Topic): Promise<void> {
    try {
      if (kind === "channel") await this.#kept.current?.unsubscribe(name, deliver);
      else await this.#kept.current?.punsubscribe(name, deliver);
    } catch {
      // A lost connection has no subscriptions.
    }
  }
}

function newTopic(kind: Topic["kind"], name: string): Topic {
  const listeners = new Set<Listener>();
  const deliver = (text: string, channel: string) => {
    for (const listener of listeners) listener.onMessage(text, channel);
  };
  return { kind, name, listeners, deliver, confirmed: false, waiting: new Set() };
}
