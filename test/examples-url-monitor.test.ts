// Short: the URL monitor of examples/ as its users run it, on both stores.
import { cpSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { makeProject, startFleet, type RunningFleet } from "./support/cli.ts";
import { openPlace, PLACES } from "./support/places.ts";
import { descendants, isAlive } from "./support/processes.ts";

const EXAMPLE = fileURLToPath(new URL("../examples/url-monitor", import.meta.url));
const DOWN = "http://127.0.0.1:2/";

interface Line {
  state: string;
  status: string;
  latencyMs: number;
  availability: number;
  url: string;
  error: string | undefined;
}

/** What `uptime` prints where there is no terminal. */
function linesOf(text: string): Line[] {
  const shape = /^\d\d:\d\d:\d\d (up|down) +(\d{3}|-) +(\d+) ms +(\d+\.\d) % {2}(\S+)(?: {2}(.+))?$/gm;
  return [...text.matchAll(shape)].map(([, state, status, latency, availability, url, error]) => ({
    state: state as string,
    status: status as string,
    latencyMs: Number(latency),
    availability: Number(availability),
    url: url as string,
    error,
  }));
}

function copyOfExample(): string {
  const dir = makeProject();
  cpSync(EXAMPLE, dir, { recursive: true, filter: (path) => !/[\\/]\.fleet|urls\.txt$/.test(path) });
  return dir;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await vi.waitFor(() => expect(server.listening).toBe(true));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

const settings = (port: number) => ({
  URL_MONITOR_PORT: String(port),
  URL_MONITOR_INTERVAL_SECONDS: "0.3",
});

async function endedBySigint(fleet: RunningFleet): Promise<void> {
  const pids = [fleet.pid, ...descendants(fleet.pid)];
  expect(pids.length).toBeGreaterThan(1);
  fleet.signal("SIGINT");
  expect(await fleet.ended).toBe(0);
  await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]), { timeout: 10_000 });
}

describe.for(PLACES)("on $name", ({ at }) => {
  test("healthy, slow, failing and down endpoints are measured, and SIGINT leaves no process", async () => {
    const cwd = copyOfExample();
    const port = await freePort();
    const fleet = startFleet(["up", ...at(cwd).flags], { cwd, env: settings(port) });
    const seen = (text: string, path: string, fits: Partial<Line>) =>
      linesOf(text).find(
        (line) =>
          line.url === `http://127.0.0.1:${port}/${path}` &&
          Object.entries(fits).every(([key, value]) => line[key as keyof Line] === value),
      );
    await fleet.until(
      (text) =>
        seen(text, "healthy", { state: "up", status: "200" }) !== undefined &&
        seen(text, "slow", { state: "up", status: "200" }) !== undefined &&
        seen(text, "failing", { state: "down", status: "500" }) !== undefined &&
        linesOf(text).filter(({ url }) => url === DOWN).length > 1,
      40_000,
    );
    const lines = linesOf(fleet.stdout());
    expect(seen(fleet.stdout(), "slow", { state: "up" })?.latencyMs).toBeGreaterThanOrEqual(790);
    const quickest = lines.filter(({ url, state }) => url.endsWith("/healthy") && state === "up");
    expect(Math.min(...quickest.map(({ latencyMs }) => latencyMs))).toBeLessThan(790);
    for (const line of lines.filter(({ url }) => url === DOWN))
      expect(line).toMatchObject({ state: "down", status: "-", availability: 0, error: "ECONNREFUSED" });
    for (const line of lines) expect(line.latencyMs).toBeGreaterThan(0);
    // Also at the first looks: they begin once the endpoints answer.
    const answering = lines.filter(({ url }) => /\/(?:healthy|slow)$/.test(url));
    expect(answering.filter(({ state }) => state === "down")).toEqual([]);
    await endedBySigint(fleet);
  }, 90_000);
});

test("two slots share the URLs, and one that never answers holds up no other", async () => {
  const cwd = copyOfExample();
  const server = createServer((request, response) => {
    if (request.url !== "/stuck") response.end();
  }).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await vi.waitFor(() => expect(server.listening).toBe(true));
  const { port } = server.address() as AddressInfo;
  // So many that both slots surely own some, whatever the port makes of their hashes.
  const paths = ["stuck", ...Array.from({ length: 20 }, (_, index) => `page-${index}`)];
  const urls = paths.map((path) => `http://127.0.0.1:${port}/${path}`);
  const place = PLACES[0]?.at(cwd);
  if (place === undefined) throw new Error("there is no place");
  const fleet = startFleet(["up", "--only", "url-pinger", ...place.flags], {
    cwd,
    env: { URL_MONITOR_URLS: urls.join(" "), URL_MONITOR_INTERVAL_SECONDS: "0.5" },
  });
  await fleet.until((text) => text.includes("running url-pinger"));
  const store = await openPlace(place);
  try {
    const entries = async () => {
      const found = await store.streams.peek({ stream: "url-pinger", n: 10_000 });
      return found.map(({ raw }) => {
        const { slot_id, payload } = JSON.parse(raw) as { slot_id: number; payload: { url: string } };
        return { slot: slot_id, url: payload.url };
      });
    };
    const stuck = urls[0] as string;
    // It is given up after five seconds.
    await vi.waitFor(async () => expect((await entries()).some(({ url }) => url === stuck)).toBe(true), {
      timeout: 40_000,
      interval: 200,
    });
    const all = await entries();
    const slotsOf = (url: string) => new Set(all.filter((one) => one.url === url).map(({ slot }) => slot));
    expect(urls.filter((url) => slotsOf(url).size !== 1)).toEqual([]);
    expect(new Set(all.map(({ slot }) => slot)).size).toBe(2);

    const { slot } = all.find(({ url }) => url === stuck) ?? { slot: -1 };
    const before = all.slice(
      0,
      all.findIndex(({ url }) => url === stuck),
    );
    const others = urls.slice(1).filter((url) => slotsOf(url).has(slot));
    expect(others.length).toBeGreaterThan(0);
    const looks = others.map((other) => before.filter(({ url }) => url === other).length);
    expect(Math.min(...looks)).toBeGreaterThan(3);
  } finally {
    await store.close();
  }
  await endedBySigint(fleet);
}, 90_000);

test("another producer of the same output takes over, and the consumer goes on as it was", async () => {
  const cwd = copyOfExample();
  const env = settings(await freePort());
  const { flags } = PLACES[0]?.at(cwd) ?? { flags: [] };
  const consumer = startFleet(["up", "--only", "uptime,local-endpoints", ...flags], { cwd, env });
  await consumer.until((text) => text.includes("running uptime"));
  const failing = (text: string) => linesOf(text).filter(({ url }) => url.endsWith("/failing"));

  const http = startFleet(["worker", "--only", "url-pinger", ...flags], { cwd, env });
  await consumer.until((text) => failing(text).some(({ status }) => status === "500"), 40_000);
  const consumerPids = new Set(descendants(consumer.pid));
  await endedBySigint(http);

  const tcpArgs = ["--config", "fleet.tcp.config.ts", "--only", "url-pinger"];
  const tcp = startFleet(["worker", ...tcpArgs, ...flags], { cwd, env });
  // It asks for no status, so whoever accepts a connection is up: the score goes on from where it was.
  await consumer.until((text) => failing(text).some(({ state }) => state === "up"), 40_000);
  const swapped = failing(consumer.stdout()).find(({ state }) => state === "up");
  expect(swapped).toMatchObject({ status: "-", error: undefined });
  expect(swapped?.availability).toBeGreaterThan(0);
  expect(swapped?.availability).toBeLessThan(100);
  expect(new Set(descendants(consumer.pid))).toEqual(consumerPids);

  await endedBySigint(tcp);
  await endedBySigint(consumer);
}, 120_000);
