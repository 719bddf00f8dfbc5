// Short (`npm test`): what takes all slots of a worker at once (one error of the store, the end of all processes), and a worker that may open
// no file any more. Real processes on Redis, lease 3 s.
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { createClient } from "@redis/client";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { healFleet, type HealFleet, type Line, measured, ms } from "./support/heal-fleet.ts";
import type { Place } from "./support/places.ts";
import { runningSlots } from "./support/places.ts";
import { descendants, isAlive } from "./support/processes.ts";
import { startProxy } from "./support/proxy.ts";
import { freshNamespace } from "./support/stores.ts";

const FILES = {
  "ticker.ts": `
    import { defineContinuous } from "fleet-framework";
    import { z } from "zod";
    import { note } from "./tools.ts";
    export default defineContinuous("ticker", {
      output: z.object({ n: z.number() }),
      isolate: "slot",
      async runSlot(ctx) {
        note(ctx, "start");
        for await (const turn of ctx.loop({ everySeconds: 0.05 })) {
          await ctx.emit({ n: turn.index });
          note(ctx, "emitted");
        }
      },
    });`,
  "fleet.config.ts": `export default { automations: ["./ticker.ts"], deploy: { ticker: { slots: 3 } } };`,
};
/** For what takes a second or two on a quiet machine. */
const WAIT_MS = 60_000;
const SLOTS = ["ticker/0", "ticker/1", "ticker/2"];

function placeAt(url: string): Place {
  const namespace = freshNamespace();
  return {
    name: "Redis",
    at: () => ({ url, namespace, flags: ["--store", url, "--namespace", namespace] }),
  };
}

async function redisClient() {
  const client = createClient({ url: inject("redisUrl") });
  client.on("error", () => undefined);
  await client.connect();
  onTestFinished(() => client.destroy());
  return client;
}

/** Waits until every slot has emitted again, each in one process. */
async function allEmit(fleet: HealFleet, since: number): Promise<Line[]> {
  return vi.waitFor(
    async () => {
      const lines = fleet
        .ledger()
        .slice(since)
        .filter(({ what }) => what === "emitted");
      expect(new Set(lines.map(({ slot }) => slot)).size).toBe(SLOTS.length);
      expect(await runningSlots(fleet.store)).toEqual(new Map(SLOTS.map((slot) => [slot, ["w"]])));
      return lines;
    },
    { timeout: WAIT_MS, interval: 50 },
  );
}

async function states(fleet: HealFleet): Promise<(string | undefined)[]> {
  return Promise.all(SLOTS.map((slot) => fleet.state(slot)));
}

test("all slots fail at once by one error of the store, then all processes end at once: all run again", async () => {
  const client = await redisClient();
  const fleet = await healFleet(placeAt(inject("redisUrl")), FILES);
  const worker = fleet.worker("w", { timings: { backoffCapMs: 1000 } });
  await allEmit(fleet, 0);

  // A key of another type in the place of the stream: every push fails, and nothing else does.
  const stream = `${fleet.store.namespace}:stream:ticker`;
  expect(await client.exists(stream)).toBe(1);
  await client.multi().del(stream).set(stream, "no stream").exec();
  await vi.waitFor(
    async () => {
      for (const slot of SLOTS)
        expect(await fleet.lastHeal(slot)).toMatchObject({
          cause: "failed",
          error: expect.stringContaining("WRONGTYPE"),
        });
      // Nobody calls healthy what is down.
      expect((await states(fleet)).filter((state) => state === "running")).toEqual([]);
    },
    { timeout: WAIT_MS, interval: 20 },
  );
  await client.del(stream);
  let since = fleet.ledger().length;
  const mended = Date.now();
  await allEmit(fleet, since);
  measured("all slots had failed by one error: all emit after", ms(Date.now() - mended));

  const hosts = new Set(
    fleet
      .ledger()
      .slice(since)
      .map(({ pid }) => pid),
  );
  since = fleet.ledger().length;
  expect(hosts.size).toBe(SLOTS.length);
  const killed = Date.now();
  for (const pid of hosts) process.kill(pid, "SIGKILL");
  const lines = await vi.waitFor(
    () => {
      const found = fleet
        .ledger()
        .slice(since)
        .filter(({ what, pid }) => what === "emitted" && !hosts.has(pid));
      expect(new Set(found.map(({ slot }) => slot)).size).toBe(SLOTS.length);
      return found;
    },
    { timeout: WAIT_MS, interval: 20 },
  );
  measured("all processes were killed at once: all slots emit after", ms(Date.now() - killed));
  expect(new Set(lines.map(({ pid }) => pid)).size).toBe(SLOTS.length);
  expect(isAlive(worker.pid)).toBe(true);
  worker.signal("SIGTERM");
  expect(await worker.ended).toBe(0);
}, 240_000);

const descriptors = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;
/** Only the soft limit: what may be raised again. */
const limit = (pid: number, most: number): void =>
  void execFileSync("prlimit", ["--pid", String(pid), `--nofile=${most}:`]);

test.runIf(process.platform === "linux")(
  "a worker without a descriptor left starts no process and reaches no store, and goes on when it may open files again",
  async () => {
    const proxy = await startProxy(Number(new URL(inject("redisUrl")).port));
    onTestFinished(() => proxy.close());
    const fleet = await healFleet(placeAt(proxy.url), FILES);
    const worker = fleet.worker("w", { timings: { backoffCapMs: 1000 } });
    const [first] = await allEmit(fleet, 0);
    const before = descriptors(worker.pid);
    const hosts = descendants(worker.pid).length;

    // Numbers below the limit may still be free: what counts is that none beyond the present ones is given out.
    limit(worker.pid, 1);
    let since = fleet.ledger().length;
    process.kill(first?.pid ?? 0, "SIGKILL");
    // It cannot be started, which is said and tried again.
    await worker.until((text) => /EMFILE|could not be started/.test(text), WAIT_MS);
    expect(isAlive(worker.pid)).toBe(true);
    await vi.waitFor(async () => expect(await fleet.state(first?.slot ?? "")).not.toBe("running"), WAIT_MS);

    // The link goes as well, and no new one can be made.
    const accepted = proxy.counts.accepted;
    proxy.cut();
    await vi.waitFor(() => expect(proxy.counts.accepted).toBeGreaterThan(accepted), WAIT_MS);
    // Others reach it: the limit is the worker's own.
    expect(await fleet.store.now()).toBeGreaterThan(0);
    await vi.waitFor(async () => expect([...(await runningSlots(fleet.store))]).toEqual([]), {
      timeout: WAIT_MS,
      interval: 50,
    });
    expect(isAlive(worker.pid)).toBe(true);

    limit(worker.pid, 1024);
    since = fleet.ledger().length;
    const raised = Date.now();
    await allEmit(fleet, since);
    measured("descriptors again after none: all slots emit after", ms(Date.now() - raised));
    // None was lost to tries that failed.
    await vi.waitFor(() => expect(descendants(worker.pid).length).toBe(hosts), WAIT_MS);
    await vi.waitFor(() => expect(descriptors(worker.pid)).toBeLessThanOrEqual(before + 2), WAIT_MS);
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
  },
  240_000,
);
