// Short (`npm test`): a Redis that stands still while slots emit without waiting: the process ends by it, and the slot pays nothing.
import { expect, onTestFinished, test, vi } from "vitest";
import { openStore } from "../src/store/open.ts";
import { makeProject, startFleet } from "./support/cli.ts";
import { slotStatus } from "./support/places.ts";
import { startRedis } from "./support/redis.ts";

// A single failure would open the circuit, and leases outlast the calls' deadline.
const TIMINGS = { leaseMs: 30_000, backoffBaseMs: 100, budgets: [{ failures: 1, windowMs: 600_000 }] };

const HASTY = `
import { defineContinuous } from "fleet-framework";
import { z } from "zod";
export default defineContinuous("hasty", {
  output: z.object({ n: z.number() }),
  async runSlot(ctx) {
    for await (const turn of ctx.loop({ everySeconds: 0.1 })) void ctx.emit({ n: turn.index });
  },
});`;

test("an emit that nobody waits for costs its slot nothing while the store is away", async () => {
  const server = await startRedis({});
  onTestFinished(() => server.stop());
  const store = await openStore(server.url, { namespace: "out", deadlineSeconds: 1 });
  onTestFinished(() => store.close());
  const cwd = makeProject({
    "hasty.ts": HASTY,
    "fleet.config.ts": `
      import { defineConfig } from "fleet-framework";
      export default defineConfig({ automations: ["./hasty.ts"] });`,
  });
  const worker = startFleet(["worker", "--store", server.url, "--namespace", "out", "--json"], {
    cwd,
    env: { FLEET_TIMINGS: JSON.stringify(TIMINGS) },
  });
  const running = (how: object) =>
    vi.waitFor(
      async () => expect(await slotStatus(store, "hasty")).toMatchObject({ state: "running", ...how }),
      { timeout: 30_000, interval: 100 },
    );
  await running({ restarts: 0 });
  await server.kill("SIGSTOP");
  await expect(store.now()).rejects.toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" });
  // The fault has bitten: the process is gone because of a call that nobody waited for.
  await worker.until((text) => /"cause":"store-lost".*the process of .*hasty.* has ended/.test(text), 20_000);
  await server.kill("SIGCONT");
  await running({ restarts: 1, lastCause: "store-lost" });
  const { hasty } = await store.registry.slotHealth().then((health) => ({ hasty: health["hasty/0"] }));
  expect(hasty?.circuit ?? null).toBeNull();
  worker.signal("SIGTERM");
  expect(await worker.ended).toBe(0);
}, 90_000);
