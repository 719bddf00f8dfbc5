// Short (`npm test`): two masters, of which the one that leads stands still, or is cut off from the store (field case 17).
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Store } from "../src/store/store.ts";
import { eachSecond, fleetToKill, runsOf, ticks, TOKEN } from "./support/master-kills.ts";
import { type Place, PLACES } from "./support/places.ts";
import { startProxy } from "./support/proxy.ts";
import { freePort } from "./support/redis.ts";

vi.setConfig({ testTimeout: 150_000 });

const REDIS = PLACES[1] as Place;

test("the leader stands still for longer than its lease: another one leads, and there is one task per tick", async () => {
  const leaseMs = 6000;
  const { store, first, port, master } = await fleetToKill(REDIS, "on the store", leaseMs);
  const old = await leader(store);
  const second = await freePort();
  await master(String(second));
  const before = await runsOf(store);
  first.signal("SIGSTOP");
  await vi.waitFor(async () => expect(await leader(store)).not.toBe(old), { timeout: 20_000, interval: 50 });
  await delay(leaseMs);
  first.signal("SIGCONT");
  // From its first word on.
  expect(await leads(Number(port))).toBe(false);
  expect(await leads(second)).toBe(true);
  await newTickAfter(store, (await store.now()) + 2000);
  expect(await leader(store)).not.toBe(old);
  const fired = await ticks(store);
  expect(fired).toEqual(eachSecond(fired));
  expect(await runsOf(store)).toEqual(before);
});

test("the leader is cut off from the store: it says that it does not lead before its lease is over; one task per tick", async () => {
  const leaseMs = 10_000;
  const { store, at, first, master } = await fleetToKill(REDIS, "on the store", leaseMs);
  first.signal("SIGTERM");
  expect(await first.ended).toBe(0);
  const proxy = await startProxy(Number(new URL(at.url).port));
  onTestFinished(() => proxy.close());
  const [cut, other] = [await freePort(), await freePort()];
  await master(String(cut), ["--store", proxy.url, "--namespace", at.namespace]);
  await vi.waitFor(async () => expect(await leads(cut)).toBe(true), { timeout: 20_000, interval: 100 });
  const old = await leader(store);
  await master(String(other));
  await newTickAfter(store, await store.now());

  proxy.blackHole();
  const saidAt = firstTime(async () => !(await leads(cut)));
  const replacedAt = firstTime(async () => (await leader(store)) !== old);
  expect(await saidAt).toBeLessThan(await replacedAt);
  expect(proxy.counts.swallowed).toBeGreaterThan(0);
  await vi.waitFor(async () => expect(await leads(other)).toBe(true), { timeout: 10_000, interval: 50 });
  await newTickAfter(store, await store.now());
  proxy.heal();
  // It is back in touch: it has asked the store, and been told.
  await vi.waitFor(async () => expect(await metrics(cut)).toMatch(/^fleet_store_up 1$/m), {
    timeout: 30_000,
    interval: 100,
  });
  await newTickAfter(store, (await store.now()) + 2000);
  expect([await leads(cut), await leads(other)]).toEqual([false, true]);
  const fired = await ticks(store);
  expect(fired).toEqual(eachSecond(fired));
});

async function metrics(port: number): Promise<string> {
  const headers = { authorization: `Bearer ${TOKEN}` };
  return (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).text();
}

async function leads(port: number): Promise<boolean> {
  const text = await metrics(port);
  expect(text).toMatch(/^fleet_leading [01]$/m);
  return /^fleet_leading 1$/m.test(text);
}

async function leader(store: Store): Promise<string> {
  const { leader: id } = await store.registry.view();
  expect(id).toMatch(/^master /);
  return id ?? "";
}

/** When it was so first; asked every 100 ms, whether or not the answers before have come. */
function firstTime(holds: () => Promise<boolean>): Promise<number> {
  return new Promise((resolve, reject) => {
    const end = Date.now() + 60_000;
    let last: unknown;
    const timer = setInterval(() => {
      if (Date.now() > end) {
        clearInterval(timer);
        reject(new Error("it never was", { cause: last }));
      }
      void holds().then(
        (so) => {
          if (!so) return;
          clearInterval(timer);
          resolve(Date.now());
        },
        (error: unknown) => {
          last = error;
        },
      );
    }, 100);
  });
}

async function newTickAfter(store: Store, time: number): Promise<void> {
  await vi.waitFor(async () => expect((await ticks(store)).at(-1)).toBeGreaterThan(time), {
    timeout: 40_000,
    interval: 100,
  });
}
