// Short (`npm test`): callers that are slow on purpose, over real sockets.
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { eventBus } from "../src/primitives/events.ts";
import { ownMaster } from "./support/own-master.ts";
import { TOKEN } from "./support/rest.ts";

/** Sends `head`, then a byte of `rest` again and again, until the other side ends the connection. Answers what that said. */
async function drip(port: number, head: string, rest: string): Promise<string> {
  const socket: Socket = connect(port, "127.0.0.1");
  let said = "";
  socket.setEncoding("utf8").on("data", (text: string) => (said += text));
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(head);
  const dripping = setInterval(() => socket.write(rest), 20);
  onTestFinished(() => clearInterval(dripping));
  await once(socket, "close");
  clearInterval(dripping);
  return said;
}

const POST = `POST /api/v1/events/news HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;

it("answers 408 to a body that drips, says what to do, and ends the connection", async () => {
  const { port } = await ownMaster({ bodyMs: 300 });
  for (const head of [
    `${POST}Content-Length: 100000\r\n\r\n{"payload": "`,
    `${POST}Transfer-Encoding: chunked\r\n\r\n`,
  ]) {
    const said = await drip(port, head, head.includes("chunked") ? "1\r\n \r\n" : "x");
    expect(said).toMatch(/^HTTP\/1\.1 408 /);
    expect(said).toMatch(/connection: close/i);
    expect(said).toContain('"detail":"the body was not there as a whole after 0.3 s; nothing was done.');
  }
}, 30_000);

it("answers 408 to headers that drip, and ends the connection", async () => {
  const { port } = await ownMaster({ headersMs: 300 });
  const said = await drip(port, "GET /healthz HTTP/1.1\r\nHost: m\r\nX-Slow: ", "x");
  expect(said).toMatch(/^HTTP\/1\.1 408 /);
  expect(JSON.parse(said.slice(said.indexOf("\r\n\r\n")))).toMatchObject({
    status: 408,
    code: "FLEET_REQUEST_INVALID",
  });
}, 30_000);

it("takes a body that comes in pieces, but in time", async () => {
  const { port } = await ownMaster({ bodyMs: 20_000 });
  const body = '{"payload": 1}';
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.write(`${POST}Content-Length: ${body.length}\r\n\r\n`);
  for (const byte of body) {
    socket.write(byte);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const [said] = (await once(socket, "data")) as [Buffer];
  expect(String(said)).toMatch(/^HTTP\/1\.1 202 /);
}, 30_000);

/** Opens a stream of events and reads nothing of it until `resume`. */
async function slowReader(url: string, path: string) {
  const request = get(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${TOKEN}` } });
  onTestFinished(() => void request.destroy());
  const [response] = (await once(request, "response")) as [IncomingMessage];
  await once(response.setEncoding("utf8"), "readable");
  expect(response.read()).toBe(": open\n\n");
  let said = "";
  return {
    resume: () => void response.on("data", (text: string) => (said += text)),
    blocks: () => said.split("\n\n").filter((block) => block !== "" && !block.startsWith(":")),
  };
}

// More than what waits for a reader and what systems keep on the way, in fewer things than may wait.
const COUNT = 700;
const TEXT = "x".repeat(60_000);

it("bounds what waits for a slow reader of events in bytes, and tells it how many it missed", async () => {
  const { store, master } = await ownMaster();
  const reader = await slowReader(master.url, "/events?topics=news");
  const bus = eventBus({ store: store.events, source: "t" });
  for (let n = 0; n < COUNT; n++) await bus.publish("news", TEXT);
  reader.resume();
  const seen = () =>
    reader.blocks().map((block) => {
      const { seq, missed } = JSON.parse(block.replace(/^data: /, "")) as { seq: number; missed: number };
      return { seq, missed };
    });
  await vi.waitFor(() => expect(seen().at(-1)?.seq).toBe(COUNT), { timeout: 20_000, interval: 100 });
  const missed = seen().reduce((sum, event) => sum + event.missed, 0);
  expect(missed).toBeGreaterThan(0);
  expect(missed + seen().length).toBe(COUNT);
}, 60_000);

it("the same for a slow reader of a stream, with a gap at the place where entries are missing", async () => {
  const { store, master } = await ownMaster();
  const bounds = { maxLength: 10_000, ttlMs: 600_000, maxPayloadBytes: 100_000 };
  await store.streams.declare({ stream: "out", bounds, as: "owner" });
  const reader = await slowReader(master.url, "/automations/out/output/tail");
  const push = async (from: number, to: number, text: string) => {
    for (let n = from; n < to; n++) {
      const entry = { id: String(n), head: `{"v":1,"ts":`, tail: `,"n":${n},"text":"${text}"}` };
      await store.streams.push({ stream: "out", entries: [entry], op: { producer: "p", seq: n + 1 } });
    }
  };
  await push(0, COUNT, TEXT);
  // They are looked at every half a second: by then this reader has been given all that it can be.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  reader.resume();
  const gaps = () =>
    reader
      .blocks()
      .filter((block) => block.startsWith("event: gap\n"))
      .map((block) => (JSON.parse(block.replace(/^.*\ndata: /, "")) as { missed: number }).missed);
  const entries = () =>
    reader
      .blocks()
      .filter((block) => block.startsWith("data: "))
      .map((block) => (JSON.parse(block.slice(6)) as { n: number }).n);
  const all = () => entries().length + gaps().reduce((sum, missed) => sum + missed, 0);
  await vi.waitFor(() => expect(all()).toBe(COUNT), { timeout: 20_000, interval: 100 });
  expect(gaps().length).toBeGreaterThan(0);
  expect(entries()).toEqual(entries().toSorted((a, b) => a - b));
  await push(COUNT, COUNT + 1, "");
  await vi.waitFor(() => expect(entries().at(-1)).toBe(COUNT), { timeout: 20_000 });
}, 60_000);
