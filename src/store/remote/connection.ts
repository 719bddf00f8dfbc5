/** One link to a served store: opened, greeted, watched for signs of life, and lost once. */
import { type ClientRequestArgs } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { WebSocket } from "ws";
import { FleetError } from "../../errors.ts";
import { connectTcp, resetTcp } from "../tcp.ts";
import {
  errorFromWire,
  type Hello,
  MAX_ANSWER_BYTES,
  messagesOf,
  REMOTE_PROTOCOL,
  sameMajor,
  type ToStore,
  type Welcome,
  type WireError,
} from "../../protocol/remote.ts";
import { VERSION } from "../../protocol/version.ts";
import { closed, incompatible, notUpgraded, unanswered } from "./errors.ts";
import { Outbox } from "./outbox.ts";
import type { RemoteTarget } from "./target.ts";

export interface ConnectionSettings {
  target: RemoteTarget;
  deadlineMs: number;
  namespace: string | undefined;
}

export interface ConnectionEvents {
  onMessage: (message: Record<string, unknown>, connection: Connection) => void;
  onLost: (connection: Connection, why: string) => void;
}

/** Looks for signs of life in a row that find none, before the link is given up. */
const MOST_SILENT_LOOKS = 2;
/** How long the goodbye of the other side is waited for. */
const CLOSE_MS = 500;

export class Connection {
  readonly welcome: Welcome;
  readonly #settings: ConnectionSettings;
  readonly #socket: WebSocket;
  readonly #net: Socket;
  readonly #events: ConnectionEvents;
  readonly #pulse: ReturnType<typeof setInterval>;
  readonly out: Outbox;
  #lost: string | undefined;
  #heard = -1;
  #silent = 0;

  /** Fails within the deadline, with a FleetError. Aborted by `signal` it fails with `FLEET_CLOSED`. */
  static open(
    settings: ConnectionSettings,
    events: ConnectionEvents,
    signal: AbortSignal,
  ): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const { target, deadlineMs } = settings;
      let net: Socket | undefined;
      const gone = new AbortController();
      const socket = openSocket(target, (below) => (net = below), gone.signal);
      const settle = (how: () => void) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abandon);
        socket.removeAllListeners();
        socket.on("error", () => undefined);
        how();
      };
      const fail = (error: FleetError) =>
        settle(() => {
          gone.abort();
          socket.terminate();
          reject(error);
        });
      const abandon = () => fail(closed(target));
      const timer = setTimeout(
        () => fail(unanswered(target, `no welcome within ${deadlineMs / 1000} s`, false)),
        deadlineMs,
      );
      signal.addEventListener("abort", abandon, { once: true });
      socket.once("upgrade", (response) => (net ??= response.socket));
      socket.once("unexpected-response", (_, response) => {
        response.resume();
        fail(notUpgraded(target, response.statusCode ?? 0));
      });
      socket.once("error", (error) => fail(unanswered(target, textOf(error), false)));
      socket.once("close", (code, reason) => fail(unanswered(target, ended(code, reason), false)));
      socket.once("open", () => {
        const { namespace } = settings;
        const hello: Hello = { protocol: REMOTE_PROTOCOL, version: VERSION, namespace };
        socket.send(JSON.stringify([{ hello } satisfies ToStore]));
      });
      socket.once("message", (data) => {
        const welcome = welcomeIn((data as Buffer).toString("utf8"), target);
        if (welcome instanceof FleetError) return fail(welcome);
        settle(() => resolve(new Connection(settings, socket, net as Socket, welcome, events)));
      });
      if (signal.aborted) abandon();
    });
  }

  private constructor(
    settings: ConnectionSettings,
    socket: WebSocket,
    net: Socket,
    welcome: Welcome,
    events: ConnectionEvents,
  ) {
    this.#settings = settings;
    this.#socket = socket;
    this.#net = net;
    this.welcome = welcome;
    this.#events = events;
    this.out = new Outbox({ send: (frame, done) => socket.send(frame, done) });
    socket.on("error", (error) => this.drop(textOf(error)));
    socket.on("close", (code, reason) => this.drop(ended(code, reason)));
    socket.on("message", (data) => this.#hear((data as Buffer).toString("utf8")));
    const { deadlineMs } = settings;
    this.#pulse = setInterval(() => this.#look(), Math.max(250, Math.min(2500, deadlineMs / 2)));
    this.#pulse.unref();
  }

  get isUp(): boolean {
    return this.#lost === undefined;
  }

  /** Bytes that have come in: also those of a long answer that is not complete yet are a sign of life. */
  get received(): number {
    return this.#net.bytesRead;
  }

  /** Gives it up. */
  drop(why: string): void {
    if (this.#lost !== undefined) return;
    this.#lost = why;
    clearInterval(this.#pulse);
    this.out.close();
    // The system keeps on trying to deliver what a closed socket has left to send, and would do so when a link is mended minutes later. A reset
    // ends that; a socket of this machine has none.
    if (this.#settings.target.socketPath === undefined) resetTcp(this.#net);
    this.#socket.terminate();
    this.#events.onLost(this, why);
  }

  /** Says goodbye first. */
  async end(): Promise<void> {
    if (this.#lost !== undefined) return;
    this.#lost = "it was closed";
    clearInterval(this.#pulse);
    const over = new Promise<void>((resolve) => this.#socket.once("close", () => resolve()));
    this.#socket.close(1000);
    const timer = setTimeout(() => this.#socket.terminate(), CLOSE_MS);
    await over;
    clearTimeout(timer);
    this.out.close();
  }

  #hear(frame: string): void {
    const messages = messagesOf(frame);
    if (messages === undefined) return this.drop("what it says is no frame of a store");
    for (const message of messages) this.#events.onMessage(message, this);
  }

  /** A half-open link says nothing by itself. A look that comes late because this process stood still counts as one like any other. */
  #look(): void {
    const { received } = this;
    this.#silent = received === this.#heard ? this.#silent + 1 : 0;
    this.#heard = received;
    if (this.#silent >= MOST_SILENT_LOOKS) {
      const { deadlineMs } = this.#settings;
      return this.drop(
        `nothing was heard of it for ${(MOST_SILENT_LOOKS * Math.min(5000, deadlineMs)) / 2000} s`,
      );
    }
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }
}

/** `below`: told of the connection that TLS is laid over. */
function openSocket(
  { url, socketPath, token }: RemoteTarget,
  below: (socket: Socket) => void,
  signal: AbortSignal,
): WebSocket {
  return new WebSocket(url, {
    headers: { authorization: `Bearer ${token}` },
    maxPayload: MAX_ANSWER_BYTES,
    perMessageDeflate: false,
    followRedirects: false,
    ...(socketPath === undefined ? {} : { createConnection: () => connect(socketPath) }),
    ...(url.startsWith("wss:") ? { createConnection: overTcp(below, signal) } : {}),
  });
}

type Made = (error: Error | null, socket: Socket) => void;

/** As the default for TLS makes it, but over a connection of our own. Answered later, as an agent's may be. */
function overTcp(below: (socket: Socket) => void, signal: AbortSignal): typeof connect {
  const make = ({ host, port, ...options }: ClientRequestArgs, made: Made) => {
    const to = { host: host ?? "localhost", port: Number(port) };
    connectTcp(to, signal).then(
      (socket) => {
        below(socket);
        const servername = isIP(to.host) ? "" : to.host;
        made(null, connectTls({ ...options, path: undefined, host: to.host, servername, socket }));
      },
      (error: Error) => made(error, undefined as never),
    );
  };
  // ws hands it on to Node's request, which takes it so.
  return make as unknown as typeof connect;
}

function welcomeIn(frame: string, target: RemoteTarget): Welcome | FleetError {
  const [first] = messagesOf(frame) ?? [];
  const refused = first?.["refused"] as WireError | undefined;
  if (refused !== undefined) {
    const { code, message, retryable } = errorFromWire(refused);
    return new FleetError(code, `${target.shown}: ${message}`, { retryable });
  }
  const welcome = first?.["welcome"] as Partial<Welcome> | undefined;
  if (
    typeof welcome?.fleetId !== "string" ||
    typeof welcome.namespace !== "string" ||
    welcome.traits === undefined
  )
    return incompatible(target, "what answers there is no Fleet master");
  if (welcome.protocol !== REMOTE_PROTOCOL || !sameMajor(String(welcome.version), VERSION))
    return incompatible(
      target,
      `it is of version ${String(welcome.version)}, this is ${VERSION}: run the same major version on both sides`,
    );
  return welcome as Welcome;
}

function ended(code: number, reason: Buffer): string {
  const text = reason.toString("utf8");
  return text === "" ? `the link was closed (${code})` : `the link was closed (${code}): ${text}`;
}

function textOf(error: Error): string {
  // Node's errors of several addresses at once (IPv4 and IPv6) have an empty message.
  return error.message === "" ? ((error as { code?: string }).code ?? "unknown error") : error.message;
}
