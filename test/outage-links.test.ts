// Short (`npm test`): a worker process with short times behind a link that goes half-open, or lets nothing published through.
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { allEmit, allRun, OUTAGE_SLOTS, outage, scale, workerOn } from "./support/outage.ts";
import { type FaultProxy, startProxy } from "./support/proxy.ts";
import { freshNamespace } from "./support/stores.ts";

async function place(): Promise<{ proxy: FaultProxy; store: Store; flags: string[] }> {
  const namespace = freshNamespace();
  const proxy = await startProxy(Number(new URL(inject("redisUrl")).port));
  onTestFinished(() => proxy.close());
  const store = await openStore(inject("redisUrl"), { namespace });
  onTestFinished(() => store.close());
  return { proxy, store, flags: ["--store", proxy.url, "--namespace", namespace] };
}

const deafness = async (store: Store) => (await store.registry.view()).workers[0]?.deaf ?? null;

test("a half-open link is noticed within a deadline and replaced", async () => {
  const { proxy, store, flags } = await place();
  const { worker } = await workerOn({ store, flags });
  const open = proxy.connections();
  expect(open).toBeGreaterThanOrEqual(2);
  await outage({
    name: "half-open link",
    worker,
    store,
    ms: 100,
    breakIt: () => proxy.blackHole(),
    bites: () => vi.waitFor(() => expect(proxy.counts.swallowed).toBeGreaterThan(0)),
    // New connections work; those that there are stay open and dead.
    mend: () => proxy.heal(),
    // The deadline of a call (5 s), then a new connection and new leases.
    backMs: 10_000,
  });
}, 90_000);

test("a worker that hears nothing says so, works by polling, and recovers by itself", async () => {
  const { proxy, store, flags } = await place();
  const { worker } = await workerOn({ store, flags });
  expect(await deafness(store)).toBeNull();

  proxy.deafen();
  const deaf = performance.now();
  await vi.waitFor(async () => expect(await deafness(store)).toMatch(/did not come back/), {
    timeout: 10_000,
    interval: 50,
  });
  const noticed = performance.now() - deaf;
  expect(proxy.counts.swallowed).toBeGreaterThan(0);

  // What is desired still gets here, and work goes on.
  await scale(store, OUTAGE_SLOTS + 1);
  const scaled = performance.now();
  await allRun(store, OUTAGE_SLOTS + 1);
  const applied = performance.now() - scaled;
  await allEmit(store, worker, 10_000);
  expect(await deafness(store)).not.toBeNull();

  proxy.heal();
  const healed = performance.now();
  await vi.waitFor(async () => expect(await deafness(store)).toBeNull(), { timeout: 30_000, interval: 50 });
  const recovered = performance.now() - healed;
  console.log(
    `deaf: noticed after ${Math.round(noticed)} ms (probe every 2 s); a change was applied after ${Math.round(applied)} ms; hears again ${Math.round(recovered)} ms after the link was mended`,
  );
  expect(noticed).toBeLessThan(2 * 2000 + 2000);
  expect(applied).toBeLessThan(15_000);
  expect(recovered).toBeLessThan(20_000);
}, 120_000);
