// A real store; what stands before it is away when it is told to be.
import { expect, onTestFinished, test } from "vitest";
import { FleetError } from "../errors.ts";
import type { WorkerInfo } from "../protocol/status.ts";
import { openStore } from "../store/open.ts";
import { exitCodeOf } from "./exit.ts";
import { untilGone } from "./until-gone.ts";

const WORKER: WorkerInfo = {
  id: "w",
  incarnation: "w-1",
  host: "h",
  pid: 1,
  version: "0",
  startedAt: 1,
  capacity: 1,
  labels: {},
  automations: [],
  draining: true,
};

async function draining() {
  const store = await openStore("sqlite::memory:");
  onTestFinished(() => store.close());
  await store.registry.register({ worker: WORKER, manifests: [], ttlMs: 60_000 });
  const link = { away: true, looks: 0 };
  const view = () => {
    link.looks += 1;
    return link.away
      ? Promise.reject(new FleetError("FLEET_STORE_UNAVAILABLE", "the master is away", { retryable: true }))
      : store.registry.view();
  };
  return { store, link, wait: (seconds: number) => untilGone({ view }, WORKER, seconds, () => undefined) };
}

test("a wait goes on while the store or its master is away, and sees the end when it is back", async () => {
  const { store, link, wait } = await draining();
  const gone = wait(30);
  await expect.poll(() => link.looks, { timeout: 10_000 }).toBeGreaterThan(2);
  await store.registry.deregister({ workerId: "w", incarnation: "w-1" });
  link.away = false;
  expect(await gone).toEqual({ forced: false });
});

test("its end says whether the drain hangs or nobody knows", async () => {
  const { link, wait } = await draining();
  const away = await wait(0.3).catch((error: unknown) => error as Error);
  expect(away).toMatchObject({
    code: "FLEET_STORE_UNAVAILABLE",
    message: expect.stringContaining("has not answered"),
  });
  expect(exitCodeOf(away)).toBe(3);
  link.away = false;
  const hangs = await wait(0).catch((error: unknown) => error as Error);
  expect(hangs).toMatchObject({
    code: "FLEET_NOT_FOLLOWED",
    message: expect.stringContaining("w drains for"),
  });
  expect(exitCodeOf(hangs)).toBe(1);
});
