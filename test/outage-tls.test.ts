// Short (`npm test`): links with TLS that stall. What was sent over one that was given up must not land when it is mended.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { SILENT } from "../src/internal/log.ts";
import { startMaster } from "../src/master/master.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { freePort, startRedis } from "./support/redis.ts";
import { TOKEN } from "./support/rest.ts";
import { openShort } from "./support/stores.ts";

const folder = mkdtempSync(join(tmpdir(), "fleet-tls-"));
const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];

beforeAll(() => {
  const made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2"];
  execFileSync("openssl", [...made, "-subj", "/CN=localhost"], { stdio: "ignore" });
  // Nobody vouches for a certificate that was made just now.
  vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

const WAIT = { timeout: 20_000, interval: 100 };
const BOUNDS = { maxLength: 100, ttlMs: 600_000, maxPayloadBytes: 1000 };

function push(store: Store, seq: number) {
  const entry = { id: String(seq), head: '{"v":1,"ts":', tail: `,"n":${seq}}` };
  return store.streams.push({ stream: "s", entries: [entry], op: { producer: "p", seq } });
}

/** Pushes over a link that stalls until it is given up. */
async function pushInVain(store: Store): Promise<void> {
  await expect(push(store, 2)).rejects.toMatchObject({ code: "FLEET_STORE_UNAVAILABLE", outcome: "unknown" });
}

test("a Redis with TLS that stands still is given up, and served again by a new link once it goes on", async () => {
  const tlsPort = await freePort();
  const args = `--tls-port ${tlsPort} --tls-cert-file ${cert} --tls-key-file ${key} --tls-ca-cert-file ${cert} --tls-auth-clients no`;
  const server = await startRedis({ args: args.split(" ") });
  onTestFinished(() => server.stop());
  const told: string[] = [];
  const store = await openShort(`rediss://127.0.0.1:${tlsPort}`, {
    deadlineSeconds: 1,
    log: (_level, message) => told.push(message),
  });
  onTestFinished(() => store.close());
  await store.streams.declare({ stream: "s", bounds: BOUNDS, as: "owner" });
  await push(store, 1);
  process.kill(server.pid, "SIGSTOP");
  const goOn = () => process.kill(server.pid, "SIGCONT");
  onTestFinished(() => void goOn());
  await pushInVain(store);
  await vi.waitFor(() => expect(told.join("\n")).toContain("lost the connection to the store"), WAIT);
  goOn();
  // It was numbered: whether or not the first had arrived, it is there once.
  await vi.waitFor(() => push(store, 2), WAIT);
  expect(await store.streams.length({ stream: "s" })).toBe(2);
}, 60_000);

/** TLS in front of a plain server; `stall` stops reading what comes in. */
async function tlsInFrontOf(port: number) {
  const links = new Set<TLSSocket>();
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (client) => {
    links.add(client);
    const inner: Socket = connect(port, "127.0.0.1");
    for (const socket of [client, inner]) socket.on("error", () => undefined);
    client.pipe(inner).pipe(client);
    client.on("close", () => {
      links.delete(client);
      inner.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const link of links) link.destroy();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    stall: () => {
      const stalled = [...links];
      for (const link of stalled) {
        link.unpipe();
        link.pause();
      }
      // What the system has taken in is read once it goes on, unless the other side has reset it.
      return {
        goOn: async (seen: (bytes: number) => void) => {
          for (const link of stalled) {
            let bytes = 0;
            link.on("data", (chunk: Buffer) => (bytes += chunk.length));
            // One that was reset has ended already.
            const over = link.closed ? undefined : once(link, "close");
            link.resume();
            await over;
            seen(bytes);
          }
        },
      };
    },
  };
}

/** The store's first link stalls with an entry on it and is given up: its other end, once it reads on, finds nothing. */
async function stallsAndGoesOn(store: Store, front: Awaited<ReturnType<typeof tlsInFrontOf>>): Promise<void> {
  onTestFinished(() => store.close());
  await store.streams.declare({ stream: "s", bounds: BOUNDS, as: "owner" });
  await push(store, 1);
  const { goOn } = front.stall();
  await pushInVain(store);
  // A link that says nothing is replaced by another one.
  await vi.waitFor(async () => expect(await store.streams.length({ stream: "s" })).toBe(1), WAIT);
  let read = 0;
  await goOn((bytes) => (read += bytes));
  expect(read).toBe(0);
}

test("what was sent to Redis over a link that stalled is not read once that goes on", async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const front = await tlsInFrontOf(server.port);
  const store = await openShort(`rediss://127.0.0.1:${front.port}`, { deadlineSeconds: 1 });
  await stallsAndGoesOn(store, front);
  expect(await store.streams.length({ stream: "s" })).toBe(1);
}, 60_000);

test("what was sent to a master over a link that stalled is not read once that goes on", async () => {
  const inner = await openStore("sqlite::memory:");
  const options = { host: "127.0.0.1", port: 0, leaseMs: 10_000, sweepMs: 60_000, log: SILENT };
  const master = await startMaster({ store: inner, token: TOKEN, ...options });
  onTestFinished(async () => {
    await master.close();
    await inner.close();
  });
  const front = await tlsInFrontOf(Number(new URL(master.url).port));
  const store = await openStore(`https://127.0.0.1:${front.port}`, { token: TOKEN, deadlineSeconds: 1 });
  await stallsAndGoesOn(store, front);
  expect(await inner.streams.length({ stream: "s" })).toBe(1);
}, 60_000);
