/**
 * One server: a connection kept up, and the calls sent over it. What to do about a refusal that says "elsewhere" (MOVED, ASK) is
 * the owner's to say; the rest is the same for a single server and for each node of a cluster.
 */
import { ErrorReply } from "@redis/client";
import type { FleetError } from "../../errors.ts";
import { Throttle } from "../../internal/log.ts";
import { monotonicMs } from "../../internal/timers.ts";
import type { Call, Calls } from "./calls.ts";
import type { Connection } from "./connection.ts";
import { meaningOf, refused, textOf } from "./errors.ts";
import { KeptConnection, type Route } from "./keep-connected.ts";
import type { Address, Target } from "./target.ts";

export interface NodeOptions {
  target: Target;
  address: Address;
  /** Where it is not at its address for good. What it refuses as a read-only replica waits then for the way to the master. */
  route?: Route | undefined;
  deadlineMs: number;
  calls: Calls;
  log: (level: "info" | "warn", message: string) => void;
  /** A connection is up; `first` tells the first one from later ones. Waiting calls are to be handed to `send` now. */
  onUp: (node: Node, first: boolean) => void;
  /** No connection could be made. */
  onFailure: (node: Node, error: FleetError) => void;
  /** Where a call goes that was taken back or may be tried again. */
  submit: (call: Call) => void;
  /** True when it took care of the refusal. */
  redirect?: (call: Call, reply: string) => boolean;
}

/** How long to wait before a call is sent again that the server could not serve for the moment. */
const PARK_MS = 50;
const NOTE_MS = 10_000;

export class Node {
  readonly address: Address;
  readonly #options: NodeOptions;
  readonly #kept: KeptConnection;
  #wasUp = false;
  #lastRenewal = 0;
  /** A server that refuses writes for long is connected to anew every second: that is not said every time. */
  readonly #lostNote = new Throttle(NOTE_MS);
  readonly #backNote = new Throttle(NOTE_MS);

  constructor(options: NodeOptions) {
    this.#options = options;
    this.address = options.address;
    const { target, deadlineMs, calls, log } = options;
    this.#kept = new KeptConnection({
      settings: { target, deadlineMs, name: "fleet" },
      route: options.route ?? { address: () => options.address },
      onUp: () => {
        const first = !this.#wasUp;
        this.#wasUp = true;
        if (!first)
          this.#backNote.pass(monotonicMs(), () =>
            log("info", `connected to the store ${target.shown} again`),
          );
        options.onUp(this, first);
      },
      onLost: (connection, why) => {
        calls.trouble = { text: why };
        const again = calls.takeBack(connection, why);
        if (!calls.isClosed)
          this.#lostNote.pass(monotonicMs(), () =>
            log("warn", `lost the connection to the store ${target.shown}: ${why}`),
          );
        for (const call of again) options.submit(call);
      },
      onFailure: (error) => options.onFailure(this, error),
    });
  }

  start(): void {
    this.#kept.start();
  }

  get isUp(): boolean {
    return this.#kept.current !== undefined;
  }

  /** Sends a call, or leaves it waiting when there is no connection. */
  send(call: Call, asking = false): void {
    const connection = this.#kept.current;
    if (connection === undefined || call.settled) return;
    const { calls } = this.#options;
    call.on = connection;
    call.sentAt = monotonicMs();
    // One tick, one write: nothing can come between the two.
    if (asking) connection.send(["ASKING"]).catch(() => undefined);
    connection.send(call.args).then(
      (reply) => calls.resolve(call, reply),
      (error: unknown) => this.#refused(call, connection, error),
    );
  }

  close(): void {
    this.#kept.close();
  }

  #refused(call: Call, connection: Connection, error: unknown): void {
    // Taken back already: the connection is gone, and this is only the client's echo of it.
    if (call.settled || call.on !== connection) return;
    const { target, calls, route, redirect, submit } = this.#options;
    const reply = textOf(error, target);
    if (!isReply(error)) return connection.drop(reply);
    call.on = undefined;
    const instead = call.options.instead?.(reply, (args) => connection.send(args));
    if (instead !== undefined) {
      call.args = instead;
      return this.send(call);
    }
    if (redirect?.(call, reply) === true) return;
    const meaning = meaningOf(reply);
    if (meaning === "later" || (meaning === "reconnect" && route !== undefined)) {
      calls.trouble = { text: reply, error: () => refused(reply, target) };
      park(call, submit);
    } else {
      calls.reject(call, refused(reply, target));
    }
    if (meaning === "reconnect") this.#renew(connection, reply);
  }

  /** Behind one address another server can stand after a failover; so look again, but not more than once per second. */
  #renew(connection: Connection, why: string): void {
    if (monotonicMs() - this.#lastRenewal < 1000) return;
    this.#lastRenewal = monotonicMs();
    connection.drop(why);
  }
}

/** Sends a call again a little later; its deadline goes on meanwhile. */
export function park(call: Call, submit: (call: Call) => void): void {
  call.parked = true;
  setTimeout(() => {
    call.parked = false;
    if (!call.settled) submit(call);
  }, PARK_MS).unref();
}

/** Whether the server said so, or the client did because the connection broke. */
function isReply(error: unknown): boolean {
  return error instanceof ErrorReply;
}
