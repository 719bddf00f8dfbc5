/**
 * One connection, from its making to its loss: it never reconnects by itself, so what was sent on it and what was not is known
 * at every moment. `keepConnected` makes the next one.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Socket } from "node:net";
import { RedisClient } from "@redis/client";
import { FleetError } from "../../errors.ts";
import { connectTcp, resetTcp } from "../tcp.ts";
import { closed, refused, textOf, unanswered } from "./errors.ts";
import type { Address, Target } from "./target.ts";

export interface ConnectionSettings {
  target: Target;
  deadlineMs: number;
  /** Name by which `CLIENT LIST` shows it. */
  name: string;
  /** What is to answer is a sentinel, not a server. */
  sentinel?: boolean;
}

/** Where Node tells of the sockets that are made in this process. */
const SOCKETS = "net.client.socket";

/** So often within the time after which a silent link is given up. */
const LOOKS = 10;

type Client = ReturnType<typeof makeClient>;

export class Connection {
  readonly address: Address;
  readonly #client: Client;
  readonly #socket: Socket | undefined;
  readonly #target: Target;
  readonly #pulse: ReturnType<typeof setInterval>;
  #lost: string | undefined;
  #heard = -1;
  #silent = 0;
  #onLost: (why: string) => void = () => undefined;

  private constructor(
    client: Client,
    socket: Socket | undefined,
    address: Address,
    { target, deadlineMs }: ConnectionSettings,
  ) {
    this.#client = client;
    this.#socket = socket;
    this.address = address;
    this.#target = target;
    client.on("error", (error: unknown) => this.drop(textOf(error, target)));
    client.on("end", () => this.drop("the connection was closed"));
    // One that stays silent for longer than a try plus a deadline is taken for dead.
    const quietMs = pingMs(deadlineMs) + Math.min(5000, deadlineMs);
    this.#pulse = setInterval(() => this.#look(quietMs), quietMs / LOOKS);
    this.#pulse.unref();
  }

  /**
   * Connects, logs in and looks at what answers. Fails within the deadline with `FLEET_STORE_UNAVAILABLE`, `FLEET_STORE_AUTH`
   * or `FLEET_STORE_INCOMPATIBLE`. `onLost` is called once, when an opened connection goes.
   */
  static async open(
    address: Address,
    settings: ConnectionSettings,
    onLost: (connection: Connection, why: string) => void,
    signal: AbortSignal,
  ): Promise<Connection> {
    const { target, deadlineMs } = settings;
    const abandoned = new AbortController();
    const abandon = () => abandoned.abort();
    const timer = setTimeout(abandon, deadlineMs);
    signal.addEventListener("abort", abandon, { once: true });
    let client: Client | undefined;
    try {
      const below = target.tls ? await connectTcp(address, abandoned.signal) : undefined;
      client = makeClient(address, settings, below);
      // Without a listener the client's error events would end the process.
      client.on("error", () => undefined);
      abandoned.signal.addEventListener("abort", client.destroy.bind(client), { once: true });
      if (abandoned.signal.aborted) throw new Error(`no connection within ${deadlineMs / 1000} s`);
      const { connecting, socket = below } = connectAndSee(client);
      await connecting;
      checkServer(await client.sendCommand<Record<string, unknown>>(["HELLO"]), settings);
      const connection = new Connection(client, socket, address, settings);
      if (!client.isReady) throw new Error("the connection was closed at once");
      connection.#onLost = (why) => onLost(connection, why);
      return connection;
    } catch (error) {
      client?.destroy();
      if (signal.aborted) throw closed(target);
      if (abandoned.signal.aborted)
        throw unanswered(target, `no connection within ${deadlineMs / 1000} s`, false);
      throw openingError(error, target);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abandon);
    }
  }

  get isUsable(): boolean {
    return this.#lost === undefined && this.#client.isReady;
  }

  /** Sends a command; commands of one tick travel together. The error, if any, is the client's own: see `errors.ts`. */
  send(args: readonly string[]): Promise<unknown> {
    return this.#client.sendCommand(args);
  }

  /** As `send`, for what goes around `calls.ts`: without an answer within `ms` the connection is given up. Fails with a FleetError. */
  async ask(args: readonly string[], ms: number): Promise<unknown> {
    const timer = setTimeout(() => this.drop(`no answer within ${ms / 1000} s`), ms);
    try {
      return await this.send(args);
    } catch (error) {
      throw this.#lost === undefined
        ? openingError(error, this.#target)
        : unanswered(this.#target, this.#lost, false);
    } finally {
      clearTimeout(timer);
    }
  }

  async subscribe(channel: string, onMessage: (text: string, channel: string) => void): Promise<void> {
    await this.#client.subscribe(channel, onMessage);
  }

  /**
   * `onMessage` is the one that was subscribed. Without it the client would forget the channel only at the server's answer, and
   * take one that is subscribed again meanwhile for subscribed still.
   */
  async unsubscribe(channel: string, onMessage: (text: string, channel: string) => void): Promise<void> {
    await this.#client.unsubscribe(channel, onMessage);
  }

  async psubscribe(pattern: string, onMessage: (text: string, channel: string) => void): Promise<void> {
    await this.#client.pSubscribe(pattern, onMessage);
  }

  async punsubscribe(pattern: string, onMessage: (text: string, channel: string) => void): Promise<void> {
    await this.#client.pUnsubscribe(pattern, onMessage);
  }

  /** Gives it up. Commands without an answer fail. */
  drop(why: string): void {
    if (this.#lost !== undefined) return;
    this.#lost = this.#target.scrub(why);
    clearInterval(this.#pulse);
    // By a reset: the system keeps on trying to deliver what a closed socket has left to send, and would do so when a link is mended
    // minutes later.
    if (this.#socket !== undefined) resetTcp(this.#socket);
    this.#onLost(this.#lost);
    this.#client.destroy();
  }

  /**
   * By what has come in on the wire, also of an answer that is long on its way. The client's own timeout would end the connection without a
   * reset.
   */
  #look(quietMs: number): void {
    if (this.#socket === undefined) return;
    const { bytesRead } = this.#socket;
    this.#silent = bytesRead === this.#heard ? this.#silent + 1 : 0;
    this.#heard = bytesRead;
    if (this.#silent >= LOOKS - 1) this.drop(`nothing was heard of it for ${quietMs / 1000} s`);
  }
}

/** The client keeps its socket to itself. It makes it before `connect` returns; under TLS there is one that was made before. */
function connectAndSee(client: Client): { connecting: Promise<unknown>; socket: Socket | undefined } {
  let socket: Socket | undefined;
  const see = (message: unknown) => {
    const made = (message as { socket?: unknown }).socket;
    if (made instanceof Socket) socket = made;
  };
  subscribe(SOCKETS, see);
  try {
    return { connecting: client.connect(), socket };
  } finally {
    unsubscribe(SOCKETS, see);
  }
}

/** An idle link is tried every so often: a half-open one would otherwise never be noticed by a subscriber. */
function pingMs(deadlineMs: number): number {
  return Math.max(250, Math.min(5000, deadlineMs));
}

function makeClient(
  { host, port }: Address,
  { target, deadlineMs, name }: ConnectionSettings,
  below: Socket | undefined,
) {
  // Not by `createClient`: it first makes a class with a method for each of some 800 commands, for every set of options, which costs
  // 30 MB and a tenth of a second. All that is used here is in the class itself.
  return new RedisClient({
    RESP: 3,
    name,
    socket: {
      ...(below === undefined ? {} : { tls: true as const, socket: below }),
      host,
      port,
      noDelay: true,
      connectTimeout: deadlineMs,
      reconnectStrategy: false,
    },
    ...(target.username === undefined ? {} : { username: target.username }),
    ...(target.password === undefined ? {} : { password: target.password }),
    database: target.database,
    pingInterval: pingMs(deadlineMs),
    disableOfflineQueue: true,
    maintNotifications: "disabled",
    // No timer per command: see `calls.ts`. Undefined would mean the client's default of 5 s.
    commandOptions: { timeout: 0 },
  });
}

function checkServer(hello: Record<string, unknown>, { target, sentinel = false }: ConnectionSettings): void {
  const version = String(hello["version"]);
  const refuse = (why: string) => new FleetError("FLEET_STORE_INCOMPATIBLE", `${target.shown} ${why}`);
  if (!(Number.parseInt(version, 10) >= 7))
    throw refuse(`is version ${version}: Redis or Valkey >= 7.0 is needed`);
  if (sentinel) {
    if (hello["mode"] !== "sentinel")
      throw refuse("is a server, not a sentinel: use redis:// in the address");
    return;
  }
  if (hello["mode"] === "sentinel")
    throw refuse("is a sentinel, not a server: use redis+sentinel://host:port/master-name in the address");
  if (hello["mode"] === "cluster" && !target.cluster) {
    throw refuse("belongs to a cluster: use redis+cluster:// in the address");
  }
  if (hello["mode"] !== "cluster" && target.cluster) {
    throw refuse("is no cluster: use redis:// in the address");
  }
}

function openingError(error: unknown, target: Target): Error {
  if (error instanceof FleetError) return error;
  const text = textOf(error, target);
  if (/unknown command [`'"]?HELLO/i.test(text)) {
    return new FleetError("FLEET_STORE_INCOMPATIBLE", `${target.shown} is older than Redis 7.0`);
  }
  const reply = /^[A-Z]{3,} /.test(text) ? refused(text, target) : undefined;
  return reply ?? unanswered(target, text, false);
}
