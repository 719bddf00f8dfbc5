/**
 * Listens to one sentinel at a time, and moves on to the next when that one goes. `+switch-master` is a hint that comes at once;
 * a look every two seconds is what counts, as a message can be missed.
 */
import { FleetError, messageOf } from "../../errors.ts";
import { Throttle } from "../../internal/log.ts";
import { monotonicMs, sleep } from "../../internal/timers.ts";
import type { Connection, ConnectionSettings } from "./connection.ts";
import { unanswered } from "./errors.ts";
import { KeptConnection } from "./keep-connected.ts";
import type { Address } from "./target.ts";

export interface SentinelWatchOptions {
  settings: ConnectionSettings;
  /** In the order in which to try them. */
  sentinels: () => readonly Address[];
  /** Name of the master. */
  master: string;
  askMs: number;
  /** By the word of this sentinel the master is there, as before or since now. */
  onAddress: (sentinel: Address, master: Address) => void;
  /** All of them were tried in vain. */
  onNobody: (why: string) => void;
}

const LOOK_MS = 2000;
const NOTE_MS = 60_000;

export class SentinelWatch {
  readonly #options: SentinelWatchOptions;
  readonly #kept: KeptConnection;
  readonly #end = new AbortController();
  readonly #note = new Throttle(NOTE_MS);
  #failures = 0;

  constructor(options: SentinelWatchOptions) {
    this.#options = options;
    this.#kept = new KeptConnection({
      settings: options.settings,
      route: {
        // After a loss the first attempt goes to the same one, the next ones around.
        address: (attempt) => {
          const sentinels = options.sentinels();
          return sentinels[(attempt - 1) % sentinels.length] as Address;
        },
      },
      onUp: (connection) => this.#listen(connection),
      onLost: () => undefined,
      onFailure: (error) => {
        if (++this.#failures < options.sentinels().length) return;
        this.#note.pass(monotonicMs(), () => options.onNobody(error.message));
      },
    });
  }

  /** Harmless when it has been started. */
  start(): void {
    this.#kept.start();
  }

  close(): void {
    this.#end.abort();
    this.#kept.close();
  }

  /** Asks a sentinel where the master is. */
  async ask(connection: Connection, ms: number): Promise<Address> {
    const { master, settings } = this.#options;
    const reply = await connection.ask(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", master], ms);
    const [host, port] = (reply ?? []) as [string?, string?];
    if (host !== undefined) return { host, port: Number(port) };
    const known = await namesOf(connection, ms);
    if (known.length === 0)
      throw unanswered(settings.target, `it knows no master "${master}", and no other`, false);
    throw new FleetError(
      "FLEET_STORE_URL_INVALID",
      `it knows no master "${master}", but ${known.map((name) => `"${name}"`).join(", ")}: correct the name in the address`,
    );
  }

  async #listen(connection: Connection): Promise<void> {
    const { master, onAddress } = this.#options;
    await this.#subscribe(connection, (text) => {
      const [name, , , host, port] = text.split(" ");
      if (name !== master || host === undefined) return;
      onAddress(connection.address, { host, port: Number(port) });
    });
    await this.#look(connection);
    this.#failures = 0;
    void this.#lookOn(connection);
  }

  async #subscribe(connection: Connection, onMessage: (text: string) => void): Promise<void> {
    const { askMs, settings } = this.#options;
    const timer = setTimeout(() => connection.drop("a subscription was not confirmed"), askMs);
    try {
      await connection.subscribe("+switch-master", onMessage);
    } catch (error) {
      throw unanswered(settings.target, settings.target.scrub(messageOf(error)), false);
    } finally {
      clearTimeout(timer);
    }
  }

  async #lookOn(connection: Connection): Promise<void> {
    const { signal } = this.#end;
    for (;;) {
      await sleep(LOOK_MS, signal);
      if (signal.aborted || !connection.isUsable) return;
      try {
        await this.#look(connection);
      } catch (error) {
        // Another one may know.
        connection.drop(messageOf(error));
      }
    }
  }

  async #look(connection: Connection): Promise<void> {
    this.#options.onAddress(connection.address, await this.ask(connection, this.#options.askMs));
  }
}

async function namesOf(connection: Connection, ms: number): Promise<string[]> {
  const masters = (await connection.ask(["SENTINEL", "MASTERS"], ms)) as Record<string, unknown>[];
  return masters.map((one) => String(one["name"]));
}
