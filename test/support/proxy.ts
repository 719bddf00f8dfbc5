// A TCP proxy that breaks the link between a client and a server on command, and counts what it broke.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export type Direction = "both" | "to-server" | "to-client";

export interface FaultCounts {
  /** Connections that were passed on to the server. */
  accepted: number;
  /** Connections that were reset at once, because of `refuse` or because the server was not there. */
  refused: number;
  /** Connections that `cut` or a lost reply reset. */
  cut: number;
  /** Bytes that a black hole took. */
  swallowed: number;
  /** Replies that the server gave and the client never saw. */
  lostReplies: number;
  /** Chunks that were passed on late. */
  delayed: number;
}

export interface FaultProxy {
  readonly port: number;
  /** `redis://` address of the proxy. */
  readonly url: string;
  readonly counts: Readonly<FaultCounts>;
  /** Number of connections that are open now. */
  connections(): number;
  /** Resets all connections; new ones are welcome. */
  cut(): void;
  /** Existing and new connections stay open, and what is sent over them in that direction is swallowed. */
  blackHole(direction?: Direction): void;
  /** What goes to a client that subscribes is swallowed, and only that: all else works. */
  deafen(): void;
  /** New connections are reset at once; with `cut`, existing ones too. */
  refuse(): void;
  /** Everything that goes to the client comes that much later. */
  delay(ms: number): void;
  /**
   * Passes the next request that contains `text` on to the server; when its reply comes, the client does not get it: its
   * connection is reset, or (`"silence"`) stays open and delivers nothing any more.
   */
  loseReplyTo(text: string, how: "reset" | "silence"): void;
  /** New connections work again. Those that were in a black hole stay dead, as half-open links do. */
  heal(): void;
  close(): Promise<void>;
}

interface Link {
  client: Socket;
  server: Socket;
  hole: Direction | undefined;
  losing: "reset" | "silence" | undefined;
  subscribes: boolean;
}

export async function startProxy(targetPort: number): Promise<FaultProxy> {
  const counts: FaultCounts = { accepted: 0, refused: 0, cut: 0, swallowed: 0, lostReplies: 0, delayed: 0 };
  const links = new Set<Link>();
  let mode: Mode = healed();
  let lose: { text: string; how: "reset" | "silence" } | undefined;

  function drop(link: Link, count: "cut" | undefined): void {
    if (!links.delete(link)) return;
    if (count !== undefined) counts[count] += 1;
    link.client.resetAndDestroy();
    link.server.destroy();
  }

  function toServer(link: Link, chunk: Buffer): void {
    if (swallows(link, "to-server")) return void (counts.swallowed += chunk.length);
    if (/\$\d+\r\np?subscribe\r\n/i.test(chunk.toString("latin1"))) link.subscribes = true;
    if (lose !== undefined && chunk.includes(lose.text)) {
      link.losing = lose.how;
      lose = undefined;
    }
    link.server.write(chunk);
  }

  function toClient(link: Link, chunk: Buffer): void {
    if (link.losing !== undefined) {
      counts.lostReplies += 1;
      if (link.losing === "reset") return drop(link, "cut");
      link.hole = "to-client";
      link.losing = undefined;
    }
    if (mode.deaf && link.subscribes) link.hole = "to-client";
    if (swallows(link, "to-client")) return void (counts.swallowed += chunk.length);
    if (mode.delayMs === 0) return void link.client.write(chunk);
    counts.delayed += 1;
    setTimeout(() => link.client.write(chunk), mode.delayMs);
  }

  const listener = createServer((client) => {
    client.on("error", () => undefined);
    if (mode.refuse) return refuseOne(client);
    const server = connect(targetPort, "127.0.0.1");
    const link: Link = { client, server, hole: mode.hole, losing: undefined, subscribes: false };
    links.add(link);
    let reached = false;
    server.once("connect", () => {
      reached = true;
      counts.accepted += 1;
    });
    server.on("error", () => undefined);
    server.on("close", () => {
      if (!reached) counts.refused += 1;
      // A black hole tells nobody that the other side went away.
      if (!swallows(link, "to-client")) drop(link, undefined);
    });
    client.on("close", () => drop(link, undefined));
    client.on("data", (chunk) => toServer(link, chunk));
    server.on("data", (chunk) => toClient(link, chunk));
  });
  const refuseOne = (client: Socket) => {
    counts.refused += 1;
    client.resetAndDestroy();
  };

  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as { port: number };
  const proxy: FaultProxy = {
    port,
    url: `redis://127.0.0.1:${port}`,
    counts,
    connections: () => links.size,
    cut: () => links.forEach((link) => drop(link, "cut")),
    blackHole(direction = "both") {
      mode = { ...healed(), hole: direction };
      for (const link of links) link.hole = direction;
    },
    deafen: () => void (mode = { ...healed(), deaf: true }),
    refuse: () => void (mode = { ...healed(), refuse: true }),
    delay: (ms) => void (mode = { ...healed(), delayMs: ms }),
    loseReplyTo: (text, how) => void (lose = { text, how }),
    heal: () => void (mode = healed()),
    async close() {
      for (const link of links) drop(link, undefined);
      listener.close();
      await once(listener, "close");
    },
  };
  return proxy;
}

interface Mode {
  refuse: boolean;
  hole: Direction | undefined;
  delayMs: number;
  deaf: boolean;
}

const healed = (): Mode => ({ refuse: false, hole: undefined, delayMs: 0, deaf: false });

function swallows({ hole }: Link, direction: Exclude<Direction, "both">): boolean {
  return hole === "both" || hole === direction;
}
