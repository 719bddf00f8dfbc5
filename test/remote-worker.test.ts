// Short (`npm test`): `fleet worker` and other commands on the store of a master, which here is this test: one link per worker, children
// behind it, cuts and restarts of the master.
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { fleetOn, type Fleet } from "../src/automation/fleet.ts";
import { defineQueue } from "../src/contracts/queue.ts";
import { defineStream } from "../src/contracts/stream.ts";
import { SILENT } from "../src/internal/log.ts";
import { attachStoreServer, bearerOf, sameToken } from "../src/store/remote/server.ts";
import type { Store } from "../src/store/store.ts";
import { makeProject, runFleet, type RunningFleet, startFleet } from "./support/cli.ts";
import { openPlace, type Place, PLACES, runningSlots, slotStatus } from "./support/places.ts";
import { descendants, isAlive } from "./support/processes.ts";
import { startProxy } from "./support/proxy.ts";
import { freePort } from "./support/redis.ts";
import { type ServedStore, serveOn, TOKEN } from "./support/served.ts";

vi.setConfig({ testTimeout: 90_000 });

const TICK = z.object({ n: z.number(), slot: z.number(), run: z.string(), token: z.boolean() });
const TICKER = defineStream("ticker", TICK);
const DOUBLER = defineQueue("doubler", { payload: z.number(), result: z.number() });

const FILES = {
  "ticker.ts": `
    import { defineContinuous } from "fleet-framework";
    import { z } from "zod";
    export default defineContinuous("ticker", {
      output: z.object({ n: z.number(), slot: z.number(), run: z.string(), token: z.boolean() }),
      async runSlot(ctx) {
        const run = process.pid + "/" + Math.random();
        const token = JSON.stringify(process.env).includes("${TOKEN}");
        let n = 0;
        for await (const _ of ctx.loop({ everySeconds: 0.05 })) {
          // Only what the store has confirmed counts.
          const sent = await ctx.emit({ n, slot: ctx.slotId, run, token }).then(() => true, () => false);
          if (sent) n += 1;
        }
      },
    });`,
  "doubler.ts": `
    import { defineBatch, defineQueue } from "fleet-framework";
    import { z } from "zod";
    export default defineBatch("doubler", {
      tasks: defineQueue("doubler", { payload: z.number(), result: z.number() }),
      runOne: async (task) => task.payload * 2,
    });`,
  "fleet.config.ts": `
    import { defineConfig } from "fleet-framework";
    export default defineConfig({ automations: ["./ticker.ts", "./doubler.ts"], deploy: { ticker: { slots: 2 } } });`,
};

/** Lease 3 s, beat 0.3 s. */
const QUICK = JSON.stringify({
  beatMs: 300,
  leaseMs: 3000,
  stopGraceMs: 1000,
  backoffBaseMs: 200,
  backoffCapMs: 1000,
});

describe.each(PLACES)("through a master on $name", ({ at }) => {
  const master = useMaster(at);

  test("a worker has one link, whatever runs in it, and its children no way of their own", async () => {
    const { dir, store, fleet, served } = master();
    const tmp = join(dir, "tmp");
    mkdirSync(tmp);
    const worker = startWorker(dir, served.url, { TMPDIR: tmp });
    await running(store, ["doubler/0", "ticker/0", "ticker/1"]);
    expect(served.server.links).toBe(1);
    const results = await Promise.all([1, 2, 3].map((n) => fleet.call(DOUBLER, n, { waitSeconds: 20 })));
    expect(results).toEqual([2, 4, 6]);
    const ticks = await popped(fleet, 20);
    expect(new Set(ticks.map(({ slot }) => slot))).toEqual(new Set([0, 1]));
    expect(ticks.some(({ token }) => token)).toBe(false);
    const [folder = ""] = readdirSync(tmp).filter((name) => name.startsWith("fleet-link-"));
    expect(statSync(join(tmp, folder)).mode & 0o777).toBe(0o700);
    expect(statSync(join(tmp, folder, "s")).mode & 0o777).toBe(0o600);

    const children = descendants(worker.pid);
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
    expect(children.filter(isAlive)).toEqual([]);
    expect(existsSync(join(tmp, folder))).toBe(false);
    expect(served.server.links).toBe(0);
    expect(worker.stderr()).not.toContain(TOKEN);
  });

  test("a master that restarts ends no run, and loses nothing that it had confirmed", async () => {
    const { dir, store, fleet, served, restart } = master();
    startWorker(dir, served.url, { FLEET_TIMINGS: QUICK });
    await running(store, ["doubler/0", "ticker/0", "ticker/1"]);
    await popped(fleet, 20);
    const before = await runsOf(store);
    for (let round = 0; round < 3; round++) {
      await restart();
      // All slots go on over the new link.
      await popped(fleet, 20);
    }
    expect(await runsOf(store)).toEqual(before);
    const last = new Map<string, number>();
    for (const { run, n } of master().ticks) {
      const expected = (last.get(run) ?? -1) + 1;
      // An emit whose answer was lost counts for the store and not for the slot: it comes again with the same number.
      expect([expected, expected - 1]).toContain(n);
      last.set(run, n);
    }
    expect(last.size).toBe(2);
  });
});

describe("the link of a worker", () => {
  const master = useMaster((PLACES[0] as Place).at);

  test("cut for longer than the lease: its slots end, and run again when it is back", async () => {
    const { dir, store, fleet, served } = master();
    const proxy = await startProxy(served.port);
    onTestFinished(() => proxy.close());
    const worker = startWorker(dir, `http://127.0.0.1:${proxy.port}`, { FLEET_TIMINGS: QUICK });
    await running(store, ["doubler/0", "ticker/0", "ticker/1"]);
    const { run } = (await popped(fleet, 20))[0] as { run: string };
    proxy.refuse();
    proxy.cut();
    expect(proxy.counts.cut).toBe(1);
    await worker.until((text) => text.includes("lost the link"));
    await vi.waitFor(
      async () => {
        const { now, leases } = await store.registry.view();
        expect(leases.filter(({ expiresAt }) => expiresAt > now)).toEqual([]);
      },
      { timeout: 10_000, interval: 100 },
    );
    await fleet.stream(TICKER).pop({ n: 10_000 });
    proxy.heal();
    await vi.waitFor(
      async () => expect((await popped(fleet, 1)).every((tick) => tick.run !== run)).toBe(true),
      { timeout: 20_000, interval: 100 },
    );
    await running(store, ["doubler/0", "ticker/0", "ticker/1"]);
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
  });

  test("what a killed worker leaves behind is removed by the next one", async () => {
    const { dir, store, served } = master();
    const tmp = join(dir, "tmp");
    mkdirSync(tmp);
    const links = () => readdirSync(tmp).filter((name) => name.startsWith("fleet-link-"));
    const first = startWorker(dir, served.url, { TMPDIR: tmp, FLEET_TIMINGS: QUICK });
    await running(store, ["doubler/0", "ticker/0", "ticker/1"]);
    const left = links();
    expect(left).toHaveLength(1);
    first.signal("SIGKILL");
    await first.ended;
    expect(links()).toEqual(left);
    const second = startWorker(dir, served.url, { TMPDIR: tmp, FLEET_TIMINGS: QUICK });
    await second.until(
      (text) => text.includes("running doubler, ticker") || text.includes("running ticker, doubler"),
    );
    await vi.waitFor(() => expect(links()).toHaveLength(1), { timeout: 10_000 });
    expect(links()).not.toEqual(left);
  });
});

describe("commands", () => {
  const master = useMaster((PLACES[0] as Place).at);

  test("work on a master's store, by flag and by environment", async () => {
    const { dir, fleet, served } = master();
    await fleet.submit(DOUBLER, 21);
    const flags = ["--master", served.url, "--token", TOKEN];
    const status = await runFleet(["status", "--json", ...flags], { cwd: dir });
    expect(status).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(status.stdout)).toMatchObject({ store: served.url, namespace: "t" });
    const env = { FLEET_MASTER: served.url, FLEET_TOKEN: TOKEN };
    const tasks = await runFleet(["task", "ls", "doubler", "--json"], { cwd: dir, env });
    expect(tasks).toMatchObject({ code: 0, stderr: "" });
    expect(tasks.stdout).toContain('"payload":21');
    const wiped = await runFleet(["wipe", "--yes", "--store", served.url], {
      cwd: dir,
      env: { FLEET_TOKEN: TOKEN },
    });
    expect(wiped).toMatchObject({ code: 0 });
    expect(wiped.stdout).toContain(`everything of the fleet that ${served.url} serves`);
  });

  test("tell by their exit code what is wrong", async () => {
    const { dir, served } = master();
    const token = ["--token", TOKEN];
    const nobody = `http://127.0.0.1:${await freePort()}`;
    const cases: [string[], Record<string, string>, number, string][] = [
      [["--master", nobody, ...token], {}, 3, "no link to"],
      [["--master", served.url], {}, 4, "needs a token"],
      [["--master", served.url, "--token", "flt_wrong"], {}, 4, "refused the token"],
      [["--master", served.url, ...token, "--store", "sqlite:x.db"], {}, 2, "--store and --master"],
      [["--master", "redis://h", ...token], {}, 2, "no address of a master"],
      [["--store", "sqlite:x.db", ...token], {}, 2, "--token is for a master"],
      [[], { FLEET_MASTER: served.url, FLEET_STORE: "sqlite:x.db" }, 2, "are both set"],
      [["--master", served.url, ...token, "--namespace", "other"], {}, 1, 'serves the namespace "t"'],
    ];
    for (const [flags, env, code, why] of cases) {
      const result = await runFleet(["status", ...flags], { cwd: dir, env });
      expect({ flags, ...result }).toMatchObject({ flags, code, stdout: "" });
      expect(result.stderr).toContain(why);
      expect(result.stderr).not.toContain(TOKEN);
    }
  });
});

describe("over TLS", () => {
  const master = useMaster((PLACES[0] as Place).at);
  const [key, certificate] = ["key.pem", "certificate.pem"];
  const made = (cwd: string) =>
    spawnSync(
      "openssl",
      [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
      ].concat([
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        key,
        "-out",
        certificate,
      ]),
      { cwd },
    ).status === 0;

  // Node cannot make certificates, so the command openssl has to be there.
  test.skipIf(spawnSync("openssl", ["version"]).status !== 0)(
    "a command takes a certificate that it can check, and no other",
    async () => {
      const { dir, store } = master();
      expect(made(dir)).toBe(true);
      const read = (name: string) => readFileSync(join(dir, name));
      const server = createServer({ key: read(key), cert: read(certificate) });
      const links = attachStoreServer(server, {
        store,
        authorise: (request) => sameToken(bearerOf(request), TOKEN),
        log: SILENT,
      });
      server.listen(0, "localhost");
      await once(server, "listening");
      const url = `https://localhost:${(server.address() as { port: number }).port}`;
      const known = { FLEET_MASTER: url, FLEET_TOKEN: TOKEN, NODE_EXTRA_CA_CERTS: join(dir, certificate) };
      const status = await runFleet(["status", "--json"], { cwd: dir, env: known });
      expect(status).toMatchObject({ code: 0, stderr: "" });
      expect(JSON.parse(status.stdout)).toMatchObject({ store: url });
      const unknown = await runFleet(["status"], { cwd: dir, env: { ...known, NODE_EXTRA_CA_CERTS: "" } });
      expect(unknown).toMatchObject({ code: 3, stdout: "" });
      expect(unknown.stderr).toContain("certificate");
      await links.close();
      server.close();
    },
  );
});

interface Master {
  dir: string;
  store: Store;
  fleet: Fleet;
  served: ServedStore;
  /** Ends it and all its links, and starts another one on its port. */
  restart: () => Promise<void>;
  /** All that was popped by `popped`. */
  ticks: z.infer<typeof TICK>[];
}

let ticks: Master["ticks"] = [];

/** A project, and a master on a store of its own, for each test. */
function useMaster(at: Place["at"]): () => Master {
  let present: Master;
  beforeEach(async () => {
    const dir = makeProject(FILES);
    const store = await openPlace(at(dir));
    ticks = [];
    present = {
      dir,
      store,
      fleet: fleetOn(store, { log: SILENT }),
      served: await serveOn(store),
      restart: async () => {
        const { port } = present.served;
        await present.served.close();
        present.served = await serveOn(store, { port });
      },
      get ticks() {
        return ticks;
      },
    };
  });
  afterEach(async () => {
    await present.served.close();
    await present.fleet.close();
  });
  return () => present;
}

function startWorker(cwd: string, url: string, env: Record<string, string> = {}): RunningFleet {
  return startFleet(["worker", "--master", url], { cwd, env: { FLEET_TOKEN: TOKEN, ...env } });
}

async function running(store: Store, slots: readonly string[]): Promise<void> {
  await vi.waitFor(async () => expect([...(await runningSlots(store)).keys()].toSorted()).toEqual(slots), {
    timeout: 30_000,
    interval: 100,
  });
}

/** Pops until there are at least `n` more. */
async function popped(fleet: Fleet, n: number): Promise<Master["ticks"]> {
  const more: Master["ticks"] = [];
  await vi.waitFor(
    async () => {
      more.push(...(await fleet.stream(TICKER).pop({ n: 1000 })));
      expect(more.length).toBeGreaterThanOrEqual(n);
    },
    { timeout: 20_000, interval: 50 },
  );
  ticks.push(...more);
  return more;
}

/** Which process runs each slot of the ticker, and how often it was healed. */
async function runsOf(store: Store): Promise<unknown[]> {
  const slots = await Promise.all([0, 1].map((slot) => slotStatus(store, "ticker", slot)));
  return slots.map((slot) => [slot?.state, slot?.pid, slot?.restarts]);
}
