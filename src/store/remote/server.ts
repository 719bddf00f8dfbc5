/** Serves a store on an HTTP server, by upgrade of one path to a WebSocket. */
import { createHash, timingSafeEqual } from "node:crypto";
import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Server as TlsServer } from "node:https";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../internal/log.ts";
import { MAX_REQUEST_BYTES, STORE_PATH } from "../../protocol/remote.ts";
import type { Store } from "../store.ts";
import { hangUpSoon, sayLast } from "./last-words.ts";
import { type Served, serveStore } from "./serve.ts";

export interface StoreServerOptions {
  store: Store;
  /**
   * Whether who sent this request may use the store; or which calls of it, by their names on the wire. Asked at the upgrade, and again
   * every 5 s as long as the link is up: so a token that is revoked ends its links.
   */
  authorise: (request: IncomingMessage) => Access | Promise<Access>;
  log: Log;
}

export type Access = boolean | { allows: (call: string) => boolean };

export interface StoreServer {
  /** Takes an upgrade of `STORE_PATH`; false, and untouched, where it is of another path. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean;
  /** Ends an upgrade that nobody takes. */
  refuse(socket: Duplex, status: Refusal): void;
  /** Links that are up. */
  readonly links: number;
  /** Ends all links, and takes no more. Calls under way are answered, for a moment. */
  close(): Promise<void>;
}

type Refusal = 401 | 403 | 404 | 503;

const PROBE_MS = 5000;

interface Link {
  served: Served;
  request: IncomingMessage;
}

export function storeServer({ store, authorise, log }: StoreServerOptions): StoreServer {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_REQUEST_BYTES,
    perMessageDeflate: false,
    clientTracking: false,
  });
  const links = new Set<Link>();
  /** What is asked about or refused: after the upgrade nobody else looks after a socket, not even the server that took it in. */
  const strangers = new Set<Duplex>();
  let closed = false;
  const probe = setInterval(() => {
    for (const link of links) void look(link);
  }, PROBE_MS);
  probe.unref();

  async function look({ served, request }: Link): Promise<void> {
    served.probe();
    // Who cannot be asked at present keeps the link it has.
    const access = await Promise.resolve(request)
      .then(authorise)
      .catch(() => true);
    if (access === false) served.revoke();
  }

  function hold(socket: Duplex): void {
    strangers.add(socket);
    socket.once("close", () => strangers.delete(socket));
  }

  function refuse(socket: Duplex, status: Refusal): void {
    if (socket.destroyed) return;
    hold(socket);
    const more = { 401: "WWW-Authenticate: Bearer\r\n", 403: "", 404: "", 503: "Retry-After: 1\r\n" }[status];
    sayLast(
      socket,
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${more}Connection: close\r\nContent-Length: 0\r\n\r\n`,
    );
  }

  async function accept(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    hold(socket);
    // While it is asked about, nobody else listens: an error of it would end the process.
    socket.on("error", () => undefined);
    if (!isOwnOrigin(request)) return refuse(socket, 403);
    let access: Access;
    try {
      access = await authorise(request);
    } catch (error) {
      log.warn("could not tell whether a link to the store is allowed", { error: messageOf(error) });
      return refuse(socket, 503);
    }
    if (access === false) return refuse(socket, 401);
    if (closed) return refuse(socket, 503);
    sockets.handleUpgrade(request, socket, head, (one) => {
      strangers.delete(socket);
      begin(one, request, access);
    });
    // It was no handshake, and has been answered so.
    if (strangers.has(socket)) hangUpSoon(socket);
  }

  function begin(socket: WebSocket, request: IncomingMessage, access: Access): void {
    const net = request.socket;
    const peer = `link from ${net.remoteAddress ?? "this machine"}`;
    const served = serveStore(socket, {
      store,
      log,
      peer,
      allows: typeof access === "object" ? access.allows : undefined,
      received: () => net.bytesRead,
    });
    const link = { served, request };
    links.add(link);
    socket.once("close", (code, reason) => {
      links.delete(link);
      log.debug(`${peer} ended`, { code, reason: reason.toString() });
    });
  }

  return {
    upgrade(request, socket, head) {
      if (pathOf(request) !== STORE_PATH) return false;
      void accept(request, socket, head);
      return true;
    },
    refuse,
    get links() {
      return links.size;
    },
    async close() {
      closed = true;
      clearInterval(probe);
      for (const socket of strangers) socket.destroy();
      await Promise.all([...links].map(({ served }) => served.close()));
    },
  };
}

/** As `storeServer`, listening to `server`; upgrades of other paths are left to others, and refused where nobody else listens. */
export function attachStoreServer(server: Server | TlsServer, options: StoreServerOptions): StoreServer {
  const serving = storeServer(options);
  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (!serving.upgrade(request, socket, head) && server.listenerCount("upgrade") === 1)
      serving.refuse(socket, 404);
  };
  server.on("upgrade", onUpgrade);
  return {
    ...serving,
    get links() {
      return serving.links;
    },
    async close() {
      await serving.close();
      server.off("upgrade", onUpgrade);
    },
  };
}

/** The token of an `Authorization: Bearer` header. */
export function bearerOf(request: IncomingMessage): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? "")?.[1];
}

/** Compares in a time that tells nothing of either. */
export function sameToken(given: string | undefined, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return given !== undefined && timingSafeEqual(digest(given), digest(expected));
}

/** No browser may be made to open a link from a foreign page; programs send no origin. */
function isOwnOrigin({ headers }: IncomingMessage): boolean {
  const { origin, host } = headers;
  if (origin === undefined) return true;
  return URL.canParse(origin) && host !== undefined && new URL(origin).host === host.toLowerCase();
}

function pathOf({ url = "" }: IncomingMessage): string {
  return url.split("?")[0] as string;
}
