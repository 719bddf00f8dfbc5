/**
 * The way to the master of a group that sentinels watch over. Before each attempt to connect they are asked, in turn, and who
 * answers as the master must say so itself (ROLE): after a failover the old one can still be there, and a sentinel can be the last
 * to hear of it. While connected, one of them is watched: a master that was replaced on purpose, or that only the sentinels cannot
 * reach, goes on taking writes for a while, which are lost when it becomes a replica.
 */
import { FleetError } from "../../errors.ts";
import { Connection, type ConnectionSettings } from "./connection.ts";
import { unanswered } from "./errors.ts";
import type { Route } from "./keep-connected.ts";
import { SentinelWatch } from "./sentinel-watch.ts";
import { type Address, addressText, type SentinelAccess, type Target } from "./target.ts";

export interface SentinelOptions {
  target: Target;
  deadlineMs: number;
  log: (level: "info" | "warn", message: string) => void;
}

/** Longest time for one sentinel, and for the master's word on its role. */
const ASK_MS = 1000;

export class SentinelRoute implements Route {
  readonly #options: SentinelOptions;
  readonly #access: SentinelAccess;
  readonly #watch: SentinelWatch;
  readonly #askMs: number;
  /** The one that answered last goes first. */
  #sentinels: readonly Address[];
  #master: string | undefined;
  #listeners: ((address: Address) => void)[] = [];

  constructor(options: SentinelOptions) {
    const { target, deadlineMs, log } = options;
    this.#options = options;
    this.#access = target.sentinel as SentinelAccess;
    this.#sentinels = target.addresses;
    // All of them have been tried before a call's deadline is over.
    this.#askMs = Math.min(ASK_MS, deadlineMs / (target.addresses.length + 1));
    this.#watch = new SentinelWatch({
      settings: this.#settings(),
      sentinels: () => this.#sentinels,
      master: this.#access.master,
      askMs: ASK_MS,
      onAddress: (sentinel, address) => {
        this.#prefer(sentinel);
        for (const listener of this.#listeners) listener(address);
      },
      onNobody: (why) => log("warn", `no sentinel of ${target.shown} can be watched: ${why}`),
    });
  }

  async address(_attempt: number, signal: AbortSignal): Promise<Address> {
    const failures: { sentinel: Address; error: FleetError }[] = [];
    for (const sentinel of this.#sentinels) {
      try {
        const master = await this.#ask(sentinel, signal);
        this.#prefer(sentinel);
        return master;
      } catch (error) {
        if (!(error instanceof FleetError) || signal.aborted) throw error;
        failures.push({ sentinel, error });
      }
    }
    throw this.#nobody(failures);
  }

  async check(connection: Connection): Promise<void> {
    const { target, log } = this.#options;
    const master = addressText(connection.address);
    const [role] = (await connection.ask(["ROLE"], ASK_MS)) as [string];
    if (role !== "master") {
      throw unanswered(target, `the sentinels name ${master}, which is no master yet or any more`, false);
    }
    if (this.#master !== undefined && this.#master !== master)
      log("info", `the master of ${target.shown} is ${master} now, it was ${this.#master}`);
    this.#master = master;
    this.#watch.start();
  }

  onAddress(listener: (address: Address) => void): void {
    this.#listeners.push(listener);
  }

  close(): void {
    this.#listeners = [];
    this.#watch.close();
  }

  #prefer(sentinel: Address): void {
    if (this.#sentinels[0] === sentinel) return;
    this.#sentinels = [sentinel, ...this.#sentinels.filter((one) => one !== sentinel)];
  }

  async #ask(sentinel: Address, signal: AbortSignal): Promise<Address> {
    const settings = { ...this.#settings(), deadlineMs: this.#askMs };
    const connection = await Connection.open(sentinel, settings, () => undefined, signal);
    try {
      return await this.#watch.ask(connection, this.#askMs);
    } finally {
      connection.drop("it was asked");
    }
  }

  /** How to connect to a sentinel. */
  #settings(): ConnectionSettings {
    const { target, deadlineMs } = this.#options;
    const { username, password } = this.#access;
    return {
      target: {
        cluster: false,
        addresses: target.addresses,
        tls: target.tls,
        ...(username === undefined ? {} : { username }),
        ...(password === undefined ? {} : { password }),
        database: 0,
        // Its address stands before that.
        shown: "it",
        scrub: (text) => target.scrub(text),
      },
      deadlineMs: Math.min(deadlineMs, ASK_MS),
      name: "fleet-sentinel",
      sentinel: true,
    };
  }

  /** The error when none could tell: final only where waiting mends nothing, as all of them say the same. */
  #nobody(failures: readonly { sentinel: Address; error: FleetError }[]): FleetError {
    const { target } = this.#options;
    const each = failures
      .map(
        ({ sentinel, error }) =>
          `${addressText(sentinel)}: ${error.message.replace("no connection to it: ", "")}`,
      )
      .join("; ");
    const codes = new Set(failures.map(({ error }) => error.code));
    const [code = "FLEET_STORE_UNAVAILABLE"] = codes;
    if (codes.size > 1 || code === "FLEET_STORE_UNAVAILABLE")
      return unanswered(target, `no sentinel could name the master: ${each}`, false);
    return new FleetError(
      code,
      `no sentinel of ${target.shown} names the master: ${each}${REMEDY[code] ?? ""}`,
    );
  }
}

const REMEDY: Partial<Record<FleetError["code"], string>> = {
  FLEET_STORE_AUTH:
    ". The sentinels' own user and password belong behind the address: ?sentinel_username=…&sentinel_password=…",
};
