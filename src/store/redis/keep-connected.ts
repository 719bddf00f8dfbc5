/**
 * Keeps one connection up for as long as it is wanted: 50 ms after a loss, doubling to 1 s with jitter, for ever. A wrong password
 * does not end it either: passwords are rotated, and a server that comes back empty has another one for a while.
 */
import { FleetError } from "../../errors.ts";
import { backoffMs } from "../../internal/backoff.ts";
import { sleep } from "../../internal/timers.ts";
import { Connection, type ConnectionSettings } from "./connection.ts";
import { type Address, addressText } from "./target.ts";

/** Where a connection leads. */
export interface Route {
  /** Asked before each attempt since the last loss, counted from 1. Fails with a FleetError where nobody can tell. */
  address(attempt: number, signal: AbortSignal): Address | Promise<Address>;
  /** Fails with a FleetError when what answered there is not what was looked for. */
  check?(connection: Connection): Promise<void>;
  /** Calls `listener` with the address to be at, whenever it was heard of: the same one or another. */
  onAddress?(listener: (address: Address) => void): void;
}

export interface KeepConnectedOptions {
  settings: ConnectionSettings;
  route: Route;
  /** A new connection is up. When it throws, the connection is given up and the next one tried. */
  onUp: (connection: Connection) => void | Promise<void>;
  onLost: (connection: Connection, why: string) => void;
  /** An attempt failed. */
  onFailure: (error: FleetError) => void;
}

export class KeptConnection {
  readonly #options: KeepConnectedOptions;
  readonly #end = new AbortController();
  /** One attempt and the pause after it. */
  #turn = new AbortController();
  #goingTo: Address | undefined;
  #current: Connection | undefined;
  #running = false;

  constructor(options: KeepConnectedOptions) {
    this.#options = options;
    options.route.onAddress?.((address) => this.#goTo(address));
  }

  /** The connection, while one is up and usable. */
  get current(): Connection | undefined {
    return this.#current?.isUsable === true ? this.#current : undefined;
  }

  /** Starts connecting; harmless when it does already, or is connected. */
  start(): void {
    if (this.#running || this.#current !== undefined || this.#end.signal.aborted) return;
    this.#running = true;
    void this.#connect();
  }

  close(): void {
    this.#end.abort();
    this.#turn.abort();
    this.#current?.drop("the store was closed");
  }

  /** Leaves another address than this one, also when an attempt to connect there is under way; else ends the pause. */
  #goTo(address: Address): void {
    const at = this.#current?.address ?? this.#goingTo;
    if (at?.host === address.host && at.port === address.port) return;
    if (this.#current === undefined) this.#turn.abort();
    else this.#current.drop(`the server to use is ${addressText(address)} now`);
  }

  async #connect(): Promise<void> {
    const { signal } = this.#end;
    for (let attempt = 1; !signal.aborted; attempt++) {
      const turn = (this.#turn = new AbortController());
      if (await this.#try(attempt, turn.signal)) return;
      await sleep(backoffMs(attempt, { baseMs: 50, capMs: 1000, jitter: 0.3 }), turn.signal);
    }
  }

  async #try(attempt: number, turn: AbortSignal): Promise<boolean> {
    const { settings, route, onUp, onLost, onFailure } = this.#options;
    const { signal } = this.#end;
    try {
      const address = await route.address(attempt, turn);
      if (turn.aborted) return false;
      this.#goingTo = address;
      const connection = await Connection.open(
        address,
        settings,
        (lost, why) => {
          // One that was never put to use is nobody's loss.
          if (this.#current !== lost) return;
          this.#current = undefined;
          onLost(lost, why);
          if (this.#running) return;
          this.#running = true;
          // After a loss the first attempt waits too: a server that restarts is not back at once.
          void sleep(backoffMs(1, { baseMs: 50, capMs: 50, jitter: 0.3 }), signal).then(() =>
            this.#connect(),
          );
        },
        turn,
      );
      await this.#check(connection);
      if (turn.aborted || !connection.isUsable) {
        connection.drop("the attempt was given up");
        return false;
      }
      this.#current = connection;
      await onUp(connection);
      this.#running = false;
      // Lost while `onUp` was at work: then this attempt counts as failed.
      if (connection.isUsable) return true;
      this.#running = true;
      return false;
    } catch (error) {
      this.#current?.drop("it could not be put to use");
      if (error instanceof FleetError && !turn.aborted) onFailure(error);
      return false;
    } finally {
      this.#goingTo = undefined;
    }
  }

  async #check(connection: Connection): Promise<void> {
    try {
      await this.#options.route.check?.(connection);
    } catch (error) {
      connection.drop("it is not what was looked for");
      throw error;
    }
  }
}
