/**
 * The way to a served store. Rules of a call:
 *
 * - It has one deadline. With no link it waits for one until then, and fails, not sent, with `FLEET_STORE_UNAVAILABLE`.
 * - It is sent once. Without an answer (a lost link, its deadline) it fails with outcome "unknown": nothing is sent again by itself.
 * - There are never more than so many under way: past that it fails at once with `FLEET_STORE_BUSY`.
 *
 * A lost link is made anew after 50 ms, doubling to 1 s, up to half of it at random (a master that comes back has many at its door), for
 * ever. A refused token does not end it either: tokens are rotated.
 */
import { FleetError } from "../../errors.ts";
import { backoffMs } from "../../internal/backoff.ts";
import { Throttle } from "../../internal/log.ts";
import { monotonicMs, sleep } from "../../internal/timers.ts";
import type { WireError } from "../../protocol/remote.ts";
import { type Call, Calls, type Trouble } from "./calls.ts";
import { Connection } from "./connection.ts";
import { isUrgent } from "./doors.ts";
import { closed, unanswered } from "./errors.ts";
import type { RemoteTarget } from "./target.ts";
import { type Listener, type Subscription, Watches } from "./watches.ts";

export interface LinkOptions {
  target: RemoteTarget;
  deadlineMs: number;
  namespace: string | undefined;
  log: (level: "info" | "warn" | "error", message: string) => void;
}

/** Waiting longer than this for calls under way helps nobody who closes. */
const CLOSE_MS = 1000;
const NOTE_MS = 10_000;
/** A timer that is late by more than this was held up with all else, so answers may lie there unread. */
const LATE_MS = 50;

export class RemoteLink {
  readonly #options: LinkOptions;
  readonly #calls: Calls;
  readonly #watches: Watches;
  readonly #end = new AbortController();
  readonly #lostNote = new Throttle(NOTE_MS);
  readonly #backNote = new Throttle(NOTE_MS);
  #connection: Connection | undefined;
  #trouble: Trouble = { text: "not connected yet" };
  #wasUp = false;
  #lastId = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #opening: { succeed: () => void; fail: (error: Error) => void } | undefined;
  #fleetId = "";

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#calls = new Calls(options.target, options.deadlineMs);
    this.#watches = new Watches(options.target, (message) => options.log("error", message));
  }

  /** What the other side said of its store, when the link was made last. */
  get welcome(): Connection["welcome"] {
    return this.#welcome as Connection["welcome"];
  }
  #welcome: Connection["welcome"] | undefined;

  get fleetId(): string {
    return this.#fleetId;
  }

  /** Makes the link. Fails within the deadline; at once where waiting will not help. */
  async open(): Promise<void> {
    const { target, deadlineMs } = this.#options;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const opened = new Promise<void>((succeed, fail) => {
      this.#opening = { succeed, fail };
      timer = setTimeout(() => fail(unanswered(target, this.#trouble.text, false)), deadlineMs);
    });
    void this.#connect();
    try {
      await opened;
    } finally {
      clearTimeout(timer);
      this.#opening = undefined;
    }
  }

  async call(name: string, args: unknown): Promise<unknown> {
    const id = (this.#lastId += 1);
    const made = {
      id,
      text: JSON.stringify({ id, call: name, args }),
      urgent: isUrgent(name),
      now: monotonicMs(),
    };
    const answer = this.#calls.make(made, (call) => this.#send(call));
    this.#arm();
    return answer;
  }

  watch(kind: string, args: unknown, listener: Listener): Subscription {
    if (this.#calls.isClosed) throw closed(this.#options.target);
    const id = (this.#lastId += 1);
    const deadline = monotonicMs() + this.#options.deadlineMs;
    const subscription = this.#watches.add({ id, kind, args, deadline }, listener, () => this.#connection);
    this.#arm();
    return subscription;
  }

  /** See the port's `letGo`. */
  letGo(): void {
    for (const connection of this.#calls.letGo(monotonicMs()))
      connection.drop("a call got no answer, and must not be done late");
  }

  async close(): Promise<void> {
    this.#calls.close();
    this.#watches.close();
    await Promise.race([this.#calls.idle(), sleep(CLOSE_MS, this.#closedEarly())]);
    this.#end.abort();
    clearTimeout(this.#timer);
    const connection = this.#connection;
    await connection?.end();
    if (connection !== undefined) this.#calls.lost(connection, "the store was closed");
  }

  /** Ends the pause of a close as soon as there is nothing to wait for, so that its timer keeps no process. */
  #closedEarly(): AbortSignal {
    const early = new AbortController();
    void this.#calls.idle().then(() => early.abort());
    return early.signal;
  }

  #send(call: Call): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    call.on = connection;
    call.message = connection.out.add(call.text, {
      urgent: call.urgent,
      onSent: () => (call.receivedBefore = connection.received),
    });
  }

  async #connect(): Promise<void> {
    const { signal } = this.#end;
    for (let attempt = 1; !signal.aborted; attempt++) {
      if (await this.#try()) return;
      await sleep(backoffMs(attempt, { baseMs: 50, capMs: 1000, jitter: 0.5 }), signal);
    }
  }

  async #try(): Promise<boolean> {
    const { target, deadlineMs, namespace, log } = this.#options;
    try {
      const connection = await Connection.open(
        // Once the namespace is known, another one is another fleet.
        { target, deadlineMs, namespace: this.#welcome?.namespace ?? namespace },
        {
          onMessage: (message, from) => this.#hear(message, from),
          onLost: (lost, why) => this.#onLost(lost, why),
        },
        this.#end.signal,
      );
      if (!connection.isUp) return false;
      this.#connection = connection;
      this.#welcome = connection.welcome;
      this.#fleetId = connection.welcome.fleetId;
      if (this.#wasUp)
        this.#backNote.pass(monotonicMs(), () => log("info", `linked to ${target.shown} again`));
      this.#wasUp = true;
      this.#watches.renew(connection);
      for (const call of this.#calls.waiting()) this.#send(call);
      this.#opening?.succeed();
      return true;
    } catch (error) {
      if (error instanceof FleetError) this.#failed(error);
      return false;
    }
  }

  #failed(error: FleetError): void {
    const final = error.code !== "FLEET_STORE_UNAVAILABLE";
    // Who was let in before is to be let in again: a token or a version that changed by mistake is put right at the master, not here.
    const retryable = error.retryable || this.#wasUp;
    const again = () => new FleetError(error.code, error.message, { retryable });
    const text = error.message.replace(`no link to ${this.#options.target.shown}: `, "");
    this.#trouble = { text, ...(final ? { error: again } : {}) };
    if (final) this.#opening?.fail(error);
  }

  #onLost(lost: Connection, why: string): void {
    // One that was never put to use is nobody's loss.
    if (this.#connection !== lost) return;
    const { target, log } = this.#options;
    this.#connection = undefined;
    this.#trouble = { text: why };
    this.#calls.lost(lost, why);
    const { signal } = this.#end;
    if (signal.aborted || this.#calls.isClosed) return;
    this.#lostNote.pass(monotonicMs(), () => log("warn", `lost the link to ${target.shown}: ${why}`));
    // After a loss the first attempt waits too: a master that restarts is not back at once.
    void sleep(backoffMs(1, { baseMs: 50, capMs: 50, jitter: 0.5 }), signal).then(() => this.#connect());
  }

  #hear(message: Record<string, unknown>, connection: Connection): void {
    const { id, push, values, fleetId, ok, error } = message;
    if (typeof push === "number") return this.#watches.push(push, Array.isArray(values) ? values : []);
    if (typeof fleetId === "string") return void (this.#fleetId = fleetId);
    if (typeof id !== "number") return;
    const answer = { ok, ...(error === undefined ? {} : { error: error as WireError }) };
    if (!this.#watches.answer(id, answer, connection)) this.#calls.answer(id, answer);
  }

  /** One timer for all deadlines: one per call would cost most of the throughput. */
  #arm(): void {
    if (this.#timer !== undefined || (this.#calls.size === 0 && this.#watches.unready === 0)) return;
    const every = Math.min(100, Math.max(5, this.#options.deadlineMs / 20));
    const due = monotonicMs() + every;
    this.#timer = setTimeout(() => {
      const look = () => {
        this.#timer = undefined;
        this.#expire(monotonicMs());
        this.#arm();
      };
      // Whatever has come in meanwhile is read before that.
      if (monotonicMs() - due > LATE_MS) setImmediate(look);
      else look();
    }, every);
  }

  #expire(now: number): void {
    const dead = this.#calls.expire(now, this.#trouble);
    this.#watches.expire(
      now,
      this.#connection === undefined ? this.#trouble.text : "a watch was not confirmed in time",
    );
    for (const connection of dead)
      connection.drop("a call got no answer within its deadline, and nothing else came");
  }
}
