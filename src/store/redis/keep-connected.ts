/**
 * Keeps one connection up for as long as it is wanted: 50 ms after a loss, doubling to 1 s with jitter, for ever. A wrong password
 * does not end it either: passwords are rotated, and a server that comes back empty has another one for a while.
 */
import { FleetError } from "../../errors.ts";
import { backoffMs } from "../../internal/backoff.ts";
import { sleep } from "../../internal/timers.ts";
import { Connection, type ConnectionSettings } from "./connection.ts";
import type { Address } from "./target.ts";

export interface KeepConnectedOptions {
  settings: ConnectionSettings;
  /** Where to connect to; asked before each attempt since the last loss, counted from 1. */
  address: (attempt: number) => Address;
  /** A new connection is up. When it throws, the connection is given up and the next one tried. */
  onUp: (connection: Connection) => void | Promise<void>;
  onLost: (connection: Connection, why: string) => void;
  /** An attempt failed. */
  onFailure: (error: FleetError) => void;
}

export class KeptConnection {
  readonly #options: KeepConnectedOptions;
  readonly #end = new AbortController();
  #current: Connection | undefined;
  #running = false;

  constructor(options: KeepConnectedOptions) {
    this.#options = options;
  }

  /** The connection, while one is up and usable. */
  get current(): Connection | undefined {
    return this.#current?.isUsable === true ? this.#current : undefined;
  }

  /** Starts connecting; harmless when it does already. */
  start(): void {
    if (this.#running || this.#end.signal.aborted) return;
    this.#running = true;
    void this.#connect();
  }

  close(): void {
    this.#end.abort();
    this.#current?.drop("the store was closed");
  }

  async #connect(): Promise<void> {
    const { signal } = this.#end;
    for (let attempt = 1; !signal.aborted; attempt++) {
      if (await this.#try(attempt)) return;
      await sleep(backoffMs(attempt, { baseMs: 50, capMs: 1000, jitter: 0.3 }), signal);
    }
  }

  async #try(attempt: number): Promise<boolean> {
    const { settings, address, onUp, onLost, onFailure } = this.#options;
    const { signal } = this.#end;
    try {
      const connection = await Connection.open(
        address(attempt),
        settings,
        (lost, why) => {
          this.#current = undefined;
          onLost(lost, why);
          if (this.#running) return;
          this.#running = true;
          // After a loss the first attempt waits too: a server that restarts is not back at once.
          void sleep(backoffMs(1, { baseMs: 50, capMs: 50, jitter: 0.3 }), signal).then(() =>
            this.#connect(),
          );
        },
        signal,
      );
      if (signal.aborted) {
        connection.drop("the store was closed");
        return true;
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
      if (error instanceof FleetError && !signal.aborted) onFailure(error);
      return false;
    }
  }
}
