/**
 * The serving side of one link: a store, as another process sees it. It knows the port and nothing of what is behind it.
 *
 * What comes in is not trusted to be well-formed: what is no frame ends the link, what is no proper request is answered with an error. What
 * goes out is bounded: where answers pile up no further requests are read, and who does not take its hints and events is cut off (it
 * learns by its reconnection that it has missed some).
 */
import type { WebSocket } from "ws";
import { FleetError } from "../../errors.ts";
import type { Log } from "../../internal/log.ts";
import {
  CLOSE,
  type Hello,
  MAX_ANSWER_BYTES,
  MAX_REQUESTS,
  messagesOf,
  REMOTE_PROTOCOL,
  sameMajor,
  type FromStore,
  type Welcome,
  wireError,
} from "../../protocol/remote.ts";
import { VERSION } from "../../protocol/version.ts";
import type { Store } from "../store.ts";
import type { Watch } from "../watch.ts";
import { CALLS } from "./doors.ts";
import { Outbox } from "./outbox.ts";
import { WATCHES } from "./watch-doors.ts";

export interface ServeOptions {
  store: Store;
  log: Log;
  /** For log lines: who is at the other end. */
  peer: string;
  /** Which calls and watches (by their names on the wire) are allowed; default all. */
  allows?: ((call: string) => boolean) | undefined;
  /** Bytes that have come in so far: progress within a long frame counts as a sign of life. */
  received: () => number;
}

export interface Served {
  /** Takes no further requests, lets those under way be answered for a moment, and ends. Idempotent. */
  close(): Promise<void>;
  /** Ends it at once, as its right to be here is over. */
  revoke(): void;
  /** Called on an interval: notices a peer that is not there any more. */
  probe(): void;
}

const HELLO_MS = 10_000;
/** Characters of answers that wait before no more requests are read, and hints and events that wait before the link is cut. */
const MUCH = 16 * 1024 * 1024;
const TOO_MUCH = 8 * 1024 * 1024;
/** Probes in a row without any sign of life. A process whose event loop stands still for a while must not lose its link. */
const MOST_SILENT_PROBES = 6;
/** The same while nothing is read because answers pile up: over a slow link a long one may take its time. */
const MOST_PAUSED_PROBES = 60;
const CLOSE_MS = 1000;

export function serveStore(socket: WebSocket, options: ServeOptions): Served {
  const link = new Serving(socket, options);
  return { close: () => link.close(), revoke: () => link.revoke(), probe: () => link.probe() };
}

class Serving {
  readonly #socket: WebSocket;
  readonly #options: ServeOptions;
  readonly #out: Outbox;
  readonly #watches = new Map<number, Watch>();
  readonly #running = new Set<number>();
  #greeted = false;
  #over = false;
  #closing: Promise<void> | undefined;
  #whenIdle: () => void = () => undefined;
  #fleetId = "";
  #pushed = 0;
  #received = -1;
  #silent = 0;
  readonly #helloTimer: ReturnType<typeof setTimeout>;
  readonly #ended: Promise<void>;

  constructor(socket: WebSocket, options: ServeOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#out = new Outbox({ send: (frame, done) => socket.send(frame, done) });
    this.#out.onDrain = () => {
      if (socket.isPaused && this.#out.size < MUCH / 2) socket.resume();
    };
    this.#helloTimer = setTimeout(() => this.#end(CLOSE.malformed, "no hello came"), HELLO_MS);
    this.#helloTimer.unref();
    this.#ended = new Promise((resolve) => socket.once("close", () => resolve(this.#onClosed())));
    // What was wrong is said by the close that follows.
    socket.on("error", (error) => options.log.debug(`${options.peer}: ${error.message}`));
    socket.on("message", (data, isBinary) => {
      if (isBinary || this.#over) return this.#end(CLOSE.malformed, "a frame must be text");
      this.#hear((data as Buffer).toString("utf8"));
    });
  }

  probe(): void {
    const received = this.#options.received();
    this.#silent = received === this.#received ? this.#silent + 1 : 0;
    this.#received = received;
    const most = this.#socket.isPaused ? MOST_PAUSED_PROBES : MOST_SILENT_PROBES;
    if (this.#silent >= most) return this.#socket.terminate();
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }

  revoke(): void {
    this.#end(CLOSE.revoked, "the token does not hold any more");
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      const idle = new Promise<void>((resolve) => (this.#whenIdle = resolve));
      if (this.#running.size > 0) await Promise.race([idle, pause(CLOSE_MS)]);
      // A turn of the loop for the last answers to go out.
      await pause(0);
      this.#end(CLOSE.goingAway, "the master is closing");
      await Promise.race([this.#ended, pause(CLOSE_MS)]);
      this.#socket.terminate();
      await this.#ended;
    })();
    return this.#closing;
  }

  #hear(frame: string): void {
    const messages = messagesOf(frame);
    if (messages === undefined) return this.#end(CLOSE.malformed, "a frame must be a JSON array of messages");
    for (const message of messages) {
      if (this.#over) return;
      if (!this.#greeted) this.#greet(message["hello"]);
      else if (typeof message["cancel"] === "number") void this.#cancel(message["cancel"]);
      else this.#request(message);
    }
  }

  #greet(hello: unknown): void {
    if (typeof hello !== "object" || hello === null)
      return this.#end(CLOSE.malformed, "the first message must be a hello");
    const refused = refusal(hello, this.#options.store.namespace);
    if (refused !== undefined) {
      this.#say({ refused: wireError(refused) });
      return this.#endSoon(CLOSE.refused, "refused");
    }
    clearTimeout(this.#helloTimer);
    this.#greeted = true;
    const { namespace, fleetId, traits } = this.#options.store;
    this.#fleetId = fleetId;
    const { kind, entriesPerPush } = traits;
    const welcome: Welcome = {
      protocol: REMOTE_PROTOCOL,
      version: VERSION,
      namespace,
      fleetId,
      traits: { kind, entriesPerPush },
    };
    this.#say({ welcome });
  }

  #request({ id, call, watch, args }: Record<string, unknown>): void {
    if (typeof id !== "number" || !Number.isSafeInteger(id))
      return this.#end(CLOSE.malformed, "a request must bear an id");
    if (this.#running.has(id) || this.#watches.has(id))
      return this.#end(CLOSE.malformed, "an id was used twice");
    if (this.#running.size >= MAX_REQUESTS) return this.#answer(id, { error: wireError(busy()) }, false);
    if (this.#closing !== undefined) return this.#answer(id, { error: wireError(closing()) }, false);
    this.#running.add(id);
    const name = typeof call === "string" ? call : `${typeof watch === "string" ? watch : "?"}.watch`;
    const urgent = CALLS.get(name)?.urgent === true;
    const answering = typeof call === "string" ? this.#call(name, args) : this.#watch(id, watch, args, name);
    answering
      .then(
        (ok) => ({ ok }),
        (error: unknown) => ({ error: this.#told(name, error) }),
      )
      .then((answer) => this.#answer(id, answer, urgent))
      // An answer that cannot be told (no JSON, too long) is told as an error.
      .catch((error: unknown) => this.#answer(id, { error: this.#told(name, error) }, urgent));
  }

  async #call(name: string, args: unknown): Promise<unknown> {
    const call = CALLS.get(name);
    if (call === undefined) throw unknownCall(name);
    this.#allow(name);
    return call.run(this.#options.store, args);
  }

  async #watch(id: number, kind: unknown, args: unknown, name: string): Promise<unknown> {
    const door = typeof kind === "string" ? WATCHES.get(kind) : undefined;
    if (door === undefined) throw unknownCall(name);
    this.#allow(name);
    if (this.#watches.size >= MAX_REQUESTS) throw busy();
    const { watch, answer } = door.start(this.#options.store, args, (values) => this.#push(id, values));
    this.#watches.set(id, watch);
    try {
      await watch.ready;
      return await answer?.();
    } catch (error) {
      await this.#cancel(id);
      throw error;
    }
  }

  #allow(name: string): void {
    if (this.#options.allows?.(name) === false)
      throw new FleetError("FLEET_STORE_AUTH", `this token does not allow ${name}`);
  }

  async #cancel(id: number): Promise<void> {
    const watch = this.#watches.get(id);
    this.#watches.delete(id);
    // A watch that does not close cleanly is the store's own trouble; nobody listens to it any more.
    await watch?.close().catch(() => undefined);
  }

  #push(id: number, values: readonly unknown[]): void {
    if (this.#over || !this.#watches.has(id)) return;
    const text = JSON.stringify({ push: id, values } satisfies FromStore);
    this.#pushed += text.length;
    if (this.#pushed > TOO_MUCH) {
      this.#options.log.warn(`${this.#options.peer} does not take its hints and events: cut off`);
      this.#end(CLOSE.tooSlow, "hints and events pile up");
      return this.#socket.terminate();
    }
    this.#out.add(text, { onSent: () => (this.#pushed -= text.length) });
  }

  #answer(id: number, answer: { ok: unknown } | { error: unknown }, urgent: boolean): void {
    if (!this.#over) {
      const { fleetId } = this.#options.store;
      const text = JSON.stringify({ id, ...answer });
      if (text.length > MAX_ANSWER_BYTES / 3 && Buffer.byteLength(text) > MAX_ANSWER_BYTES - 2)
        throw tooLong(text);
      if (fleetId !== this.#fleetId) this.#say({ fleetId: (this.#fleetId = fleetId) });
      this.#out.add(text, { urgent });
      if (this.#out.size > MUCH && !this.#socket.isPaused) this.#socket.pause();
    }
    this.#running.delete(id);
    if (this.#running.size === 0) this.#whenIdle();
  }

  #told(name: string, error: unknown): ReturnType<typeof wireError> {
    const wire = wireError(error);
    if (wire.code === "FLEET_STORE_FAILED")
      this.#options.log.debug(`${this.#options.peer}: ${name} failed`, { error: wire.message });
    return wire;
  }

  #say(message: FromStore): void {
    this.#out.add(JSON.stringify(message), { urgent: true });
  }

  /** After what was said last has gone out. */
  #endSoon(code: number, why: string): void {
    this.#over = true;
    setImmediate(() => setImmediate(() => this.#end(code, why)));
  }

  #end(code: number, why: string): void {
    this.#over = true;
    this.#out.close();
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    // A paused socket would never see the other side's goodbye.
    this.#socket.resume();
    this.#socket.close(code, why);
  }

  #onClosed(): void {
    this.#over = true;
    clearTimeout(this.#helloTimer);
    this.#out.close();
    for (const id of this.#watches.keys()) void this.#cancel(id);
  }
}

function refusal({ protocol, version, namespace }: Partial<Hello>, served: string): FleetError | undefined {
  const refuse = (why: string) => new FleetError("FLEET_STORE_INCOMPATIBLE", why);
  if (protocol !== REMOTE_PROTOCOL)
    return refuse(
      `the master speaks protocol ${REMOTE_PROTOCOL} of the store, not ${String(protocol)}: run the same version on both sides`,
    );
  if (!sameMajor(String(version), VERSION))
    return refuse(
      `the master is of version ${VERSION}, this is ${String(version)}: run the same major version on both sides`,
    );
  if (namespace !== undefined && namespace !== served)
    return refuse(
      `the master serves ${served === "" ? "no namespace" : `the namespace "${served}"`}, not "${namespace}"`,
    );
  return undefined;
}

const unknownCall = (name: string) =>
  new FleetError(
    "FLEET_STORE_INCOMPATIBLE",
    `the master (version ${VERSION}) does not know ${JSON.stringify(name.slice(0, 100))}: run the same version on both sides`,
  );
const busy = () =>
  new FleetError("FLEET_STORE_BUSY", `${MAX_REQUESTS} calls or watches of one link are under way already`, {
    retryable: true,
  });
const closing = () => new FleetError("FLEET_STORE_UNAVAILABLE", "the master is closing", { retryable: true });
const tooLong = (text: string) =>
  new FleetError(
    "FLEET_STORE_FAILED",
    `the answer has ${Math.round(text.length / 1e6)} MB, more than goes through a link (${MAX_ANSWER_BYTES / 1024 / 1024} MiB): ask for less at once`,
  );

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
