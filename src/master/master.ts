import { createServer, type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import { isIP, type AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener, RequestError } from "@hono/node-server";
import { FleetError, messageOf } from "../errors.ts";
import { type Log, Throttle } from "../internal/log.ts";
import { monotonicMs, sleep } from "../internal/timers.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { sayLast } from "../store/remote/last-words.ts";
import { attachStoreServer } from "../store/remote/server.ts";
import type { Store } from "../store/store.ts";
import { ControlLoop } from "./control-loop.ts";
import { HANDLERS } from "./handlers.ts";
import { buildApp } from "./http/app.ts";
import { Authority } from "./http/authorise.ts";
import { addHealth } from "./http/health.ts";
import { addReference } from "./http/reference.ts";
import { problemOf, RequestProblem } from "./http/request-problem.ts";
import { readMetrics } from "./metrics.ts";
import { openServices } from "./services.ts";

export const DEFAULT_HOST = "127.0.0.1";
export const DEFAULT_PORT = 4400;

const MAX_HEADER_BYTES = 16 * 1024;
const HEADERS_MS = 10_000;
/** Of a whole request, whoever reads its body: the last resort. Routes answer 408 by themselves before. */
const REQUEST_MS = 75_000;
/** How late Node may notice. */
const CHECK_MS = 1000;
/** Longer than proxies keep an idle connection: the side that asks is the one that ends it, so no request meets a closed one. */
const KEEP_ALIVE_MS = 75_000;
/**
 * Connections at once, whoever holds them: a link per worker, a stream of events per reader, and what is idle. Far more than a fleet needs;
 * without a bound strangers could take all the files that the process may open, and with them those of its store.
 */
const MOST_CONNECTIONS = 10_000;
const SAY_FULL_MS = 10_000;
/** What is still open so long after the master was told to end is cut, and what waits for the store is left to the store's end. */
const CLOSE_MS = 1000;

export interface MasterOptions {
  /** Opened store; the master uses it and leaves closing to the caller. */
  store: Store;
  token: string;
  host: string;
  /** 0: any that is free. */
  port: number;
  leaseMs: number;
  sweepMs: number;
  log: Log;
  /** Address of the store as hosts see it, given to workers that join; undefined: they go through this master. */
  workerStore?: string | undefined;
  /** For tests: how soon the headers, and then the body of a request must be there; default 10 s and 60 s. */
  headersMs?: number;
  bodyMs?: number;
  /** The same: how many connections there may be at once; default 10 000. */
  mostConnections?: number;
}

export interface Master {
  /** Where it listens, as in `http://127.0.0.1:4400`. */
  readonly url: string;
  /** Whether it leads the fleet at present. */
  readonly leading: boolean;
  /** Ends streams of events and long polls, answers what is under way, gives the lead up. Safe to call again. */
  close(): Promise<void>;
}

/**
 * Starts a master on an open store: the REST API, the store for workers of other hosts, and its part in leading. All its state is in the
 * store: it can die at any time, and several may run. Throws `FLEET_OPTION_INVALID` where it cannot listen.
 */
export async function startMaster(options: MasterOptions): Promise<Master> {
  const { store, log, token } = options;
  const stopping = new AbortController();
  const { services, close: closeServices } = openServices({
    store,
    log,
    stopping: stopping.signal,
    workerStore: options.workerStore,
  });
  const control = new ControlLoop({
    store,
    candidate: `master ${uuidv7()}`,
    rank: 1,
    leaseMs: options.leaseMs,
    sweepMs: options.sweepMs,
    log,
  });
  const authority = new Authority(token);
  const app = buildApp({
    services,
    handlers: HANDLERS,
    authority,
    bodyMs: options.bodyMs,
    extras: (hono, authorise) => {
      addHealth(hono, {
        services,
        authorise,
        trouble: () => control.trouble,
        metrics: () => readMetrics(store, () => control.leading),
      });
      addReference(hono);
    },
  });
  const answer = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    errorHandler: (error) => unanswered(error, log),
  });
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: options.headersMs ?? HEADERS_MS,
      requestTimeout: REQUEST_MS,
      connectionsCheckingInterval: CHECK_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    (request, response) => void answer(request, response),
  );
  server.on("clientError", (error, socket) => answerClient(error, socket));
  boundConnections(server, options.mostConnections ?? MOST_CONNECTIONS, log);
  const links = attachStoreServer(server, {
    store,
    log,
    authorise: (request) => isAllowed(authority, request),
  });
  try {
    await listen(server, options);
  } catch (error) {
    await Promise.all([links.close(), closeServices()]);
    throw error;
  }
  control.start();
  let closing: Promise<void> | undefined;
  return {
    url: urlOf(server, options.host),
    get leading() {
      return control.leading;
    },
    close: () =>
      (closing ??= (async () => {
        stopping.abort();
        const ending = (async () => {
          await Promise.all([links.close(), control.stop(), closeServer(server)]);
          await closeServices();
        })();
        await inTime(ending, log);
      })()),
  };
}

/** A store that is away must not keep a master that is told to end: what waits for it fails when the store is closed. */
async function inTime(ending: Promise<void>, log: Log): Promise<void> {
  const done = new AbortController();
  const over = ending
    .catch((error: unknown) => log.debug("the master did not end cleanly", { error: messageOf(error) }))
    .finally(() => done.abort());
  await Promise.race([over, sleep(CLOSE_MS + 100, done.signal)]);
}

/** What never became a request of the app, or was no error that it knows, is answered as all else is. */
function unanswered(error: unknown, log: Log): Response {
  if (!(error instanceof RequestError)) log.error("a request failed", { error: messageOf(error) });
  const { problem } = problemOf(
    error instanceof RequestError
      ? new RequestProblem(
          400,
          "FLEET_REQUEST_INVALID",
          `the address or the Host header cannot be read: ${error.message}`,
        )
      : error,
  );
  const headers = { "content-type": "application/problem+json", "cache-control": "no-store" };
  return new Response(JSON.stringify(problem), { status: problem.status, headers });
}

/** What is no request, or is not there in time, is answered before anybody sees it. */
function answerClient(error: NodeJS.ErrnoException, socket: Duplex): void {
  // In the middle of an answer there is no place for another.
  const answering = (socket as Duplex & { _httpMessage?: { headersSent: boolean } | null })._httpMessage;
  if (!socket.writable || answering?.headersSent === true) return void socket.destroy();
  const late = error.code === "ERR_HTTP_REQUEST_TIMEOUT";
  const long = error.code === "HPE_HEADER_OVERFLOW";
  const status = late ? 408 : long ? 431 : 400;
  const detail = late
    ? "the request was not there as a whole in time; nothing was done"
    : long
      ? `the headers are longer than ${MAX_HEADER_BYTES} bytes`
      : "this is no HTTP request";
  const { problem } = problemOf(new RequestProblem(status, "FLEET_REQUEST_INVALID", detail));
  const body = JSON.stringify(problem);
  sayLast(
    socket,
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      "content-type: application/problem+json",
      `content-length: ${Buffer.byteLength(body)}`,
      "cache-control: no-store",
      "connection: close",
      "",
      body,
    ].join("\r\n"),
  );
}

/** What is above it is closed at once: there is nobody to answer it. */
function boundConnections(server: Server, most: number, log: Log): void {
  server.maxConnections = most;
  const quietly = new Throttle(SAY_FULL_MS);
  server.on("drop", () =>
    quietly.pass(monotonicMs(), (swallowed) =>
      log.warn(`a connection was closed at once: ${most} are open, and no more are taken`, {
        dropped: swallowed + 1,
      }),
    ),
  );
}

function isAllowed(authority: Authority, request: IncomingMessage): boolean {
  try {
    authority.authorise(request.headers.authorization, request.socket.remoteAddress ?? "", monotonicMs());
    return true;
  } catch {
    return false;
  }
}

function listen(server: Server, { host, port }: MasterOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      const hint =
        error.code === "EADDRINUSE"
          ? "something listens there already; choose another --port (FLEET_PORT)"
          : messageOf(error);
      reject(
        new FleetError("FLEET_OPTION_INVALID", `the master cannot listen on ${host}:${port}: ${hint}`, {
          cause: error,
        }),
      );
    };
    server.once("error", failed);
    server.listen(port, host, () => {
      server.off("error", failed);
      resolve();
    });
  });
}

function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  return `http://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
  await closed;
  clearTimeout(cut);
}

/** Whether only this machine can reach what listens on that host. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}
