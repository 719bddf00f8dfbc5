// Short (`npm test`): whoever has no token, or speaks no HTTP, leaves nothing behind in a master, and holds nothing up.
import diagnostics from "node:diagnostics_channel";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { SILENT } from "../src/internal/log.ts";
import { openStore } from "../src/store/open.ts";
import { startRelay } from "../src/worker/store-relay.ts";
import { ownMaster } from "./support/own-master.ts";
import { TOKEN } from "./support/rest.ts";
import { serveOn } from "./support/served.ts";

/** What servers of this process have taken in since then and have not let go of, also after an upgrade. */
function heldSockets(): () => number {
  const taken: Socket[] = [];
  const take = (message: unknown) => void taken.push((message as { socket: Socket }).socket);
  diagnostics.subscribe("net.server.socket", take);
  onTestFinished(() => void diagnostics.unsubscribe("net.server.socket", take));
  return () => {
    expect(taken.length).toBeGreaterThan(0);
    return taken.filter(({ closed }) => !closed).length;
  };
}

/** Says `text`, waits for an answer, and stays: it does not hang up when the other side does. */
async function stranger(place: number | string, text: string): Promise<{ socket: Socket; said: string }> {
  const socket = connect({
    ...(typeof place === "number" ? { port: place } : { path: place }),
    allowHalfOpen: true,
  });
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(text);
  const [said] = (await once(socket, "data")) as [Buffer];
  return { socket, said: said.toString() };
}

interface Upgrade {
  path?: string;
  headers?: readonly string[];
  key?: string;
}

function upgrade({
  path = "/api/v1/store",
  headers = [],
  key = "MDEyMzQ1Njc4OWFiY2RlZg==",
}: Upgrade): string {
  return [
    `GET ${path} HTTP/1.1`,
    "Host: m",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Key: ${key}`,
    ...headers,
    "",
    "",
  ].join("\r\n");
}

const bearer = `Authorization: Bearer ${TOKEN}`;
const REFUSED: [number, string, string][] = [
  [401, "without a token", upgrade({})],
  [403, "from a foreign page", upgrade({ headers: [bearer, "Origin: http://elsewhere"] })],
  [404, "of another path", upgrade({ path: "/api/v1/other", headers: [bearer] })],
  [400, "that is no handshake", upgrade({ headers: [bearer], key: "short" })],
];
const NO_REQUEST: [number, string, string][] = [
  [400, "what is no HTTP", "hello\r\n\r\n"],
  [431, "headers that are too large", `GET /healthz HTTP/1.1\r\nHost: m\r\nX: ${"x".repeat(20_000)}`],
  [408, "headers that never end", "GET /healthz HTTP/1.1\r\nHost: m\r\nX: "],
];

describe.each([
  ...REFUSED.map(([status, what, text]) => [status, `an upgrade ${what}`, text] as const),
  ...NO_REQUEST,
])("%i for %s", (status, _, text) => {
  it("lets go of the socket when the client sends on", async () => {
    const held = heldSockets();
    const { port } = await ownMaster({ headersMs: 300 });
    const { socket, said } = await stranger(port, text);
    expect(said).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    socket.write("x");
    socket.end("x");
    await vi.waitFor(() => expect(held()).toBe(0), { timeout: 10_000 });
  });

  it("lets go of the socket when the client stays, silent", async () => {
    const held = heldSockets();
    const { port } = await ownMaster({ headersMs: 300 });
    await stranger(port, text);
    await vi.waitFor(() => expect(held()).toBe(0), { timeout: 10_000 });
  });
});

it("a stranger that stays does not hold up the end of a master", async () => {
  const held = heldSockets();
  const { master, port } = await ownMaster();
  for (const [, , text] of REFUSED) await stranger(port, text);
  await master.close();
  await vi.waitFor(() => expect(held()).toBe(0), { timeout: 10_000 });
});

it("nor one that is still being asked about", async () => {
  const held = heldSockets();
  const store = await openStore("sqlite::memory:");
  const asked = new Set<unknown>();
  const served = await serveOn(store, {
    authorise: (request) => {
      asked.add(request);
      return new Promise(() => undefined);
    },
  });
  const socket = connect(served.port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => undefined).write(upgrade({}));
  await vi.waitFor(() => expect(asked.size).toBe(1));
  await served.close();
  await store.close();
  await vi.waitFor(() => expect(held()).toBe(0), { timeout: 10_000 });
});

it("a refusal as nobody can be asked lets go of the socket, too", async () => {
  const held = heldSockets();
  const store = await openStore("sqlite::memory:");
  const served = await serveOn(store, { authorise: () => Promise.reject(new Error("away")) });
  const { said } = await stranger(served.port, upgrade({}));
  expect(said).toMatch(/^HTTP\/1\.1 503 /);
  await vi.waitFor(() => expect(held()).toBe(0), { timeout: 10_000 });
  await served.close();
  await store.close();
});

it("a worker's relay lets go of whom it refuses, and ends while one stays", async () => {
  const held = heldSockets();
  const store = await openStore("sqlite::memory:");
  const relay = await startRelay(store, SILENT);
  const { said } = await stranger(relay.url.replace(/^fleet\+unix:/, ""), upgrade({}));
  expect(said).toMatch(/^HTTP\/1\.1 401 /);
  await relay.close();
  await store.close();
  await vi.waitFor(() => expect(held()).toBe(0), { timeout: 10_000 });
});

it("takes so many connections and no more, says so once, and takes others when some have gone", async () => {
  const warnings: string[] = [];
  const { port } = await ownMaster({
    mostConnections: 2,
    log: { ...SILENT, warn: (line) => void warnings.push(line) },
  });
  const request = "GET /healthz HTTP/1.1\r\nHost: m\r\n\r\n";
  const first = await stranger(port, request);
  await stranger(port, request);
  for (let more = 0; more < 2; more++) {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    const answers: Buffer[] = [];
    socket.on("data", (data) => answers.push(data));
    socket.write(request);
    await once(socket, "close");
    expect(answers).toEqual([]);
  }
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain("2 are open");
  first.socket.destroy();
  await vi.waitFor(
    async () => {
      const { status } = await fetch(`http://127.0.0.1:${port}/healthz`);
      expect(status).toBe(200);
    },
    { timeout: 10_000 },
  );
});
