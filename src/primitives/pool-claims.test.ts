import { expect, it } from "vitest";
import { FleetError } from "../errors.ts";
import { SILENT, Throttle } from "../internal/log.ts";
import type { PoolStore } from "../store/pool-store.ts";
import { PoolClaims } from "./pool-claims.ts";
import { PoolWaiters } from "./pool-waiters.ts";

const away = () => new FleetError("FLEET_STORE_UNAVAILABLE", "away", { retryable: true });

/** Claims whose answers are all lost, on a store that takes a place back only after so many tries. */
function claims(failures: number) {
  const left: string[] = [];
  let asked = "";
  const store: Pick<PoolStore, "claim" | "leave"> = {
    claim: ({ request }) => {
      asked = request;
      return Promise.reject(away());
    },
    leave: ({ request }) => {
      left.push(request);
      return left.length <= failures ? Promise.reject(away()) : Promise.resolve();
    },
  };
  const made = new PoolClaims({
    store: store as PoolStore,
    pool: "p",
    holder: "h",
    waiters: new PoolWaiters(() => ({ ready: Promise.resolve(), close: () => Promise.resolve() })),
    declare: () => Promise.resolve(),
    log: SILENT,
    quietly: new Throttle(1000),
  });
  const none = { signal: undefined, fence: undefined };
  const claim = () =>
    made.claim({ where: {}, n: 1, holdMs: 1000, waitMs: 0, autoExtend: true, by: "me", ...none });
  return { made, claim, left, asked: () => asked };
}

it("gives back what it may have been granted until the store has heard so", async () => {
  const { claim, left, asked } = claims(3);
  await expect(claim()).rejects.toThrow("away");
  await expect.poll(() => left.length, { timeout: 5000 }).toBe(4);
  expect(new Set(left)).toEqual(new Set([asked()]));
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(left).toHaveLength(4);
});

it("does not keep its process from ending while the store is away", async () => {
  const { made, claim, left } = claims(Number.POSITIVE_INFINITY);
  await expect(claim()).rejects.toThrow("away");
  await expect.poll(() => left.length).toBeGreaterThan(1);
  await made.settled();
  const tries = left.length;
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(left).toHaveLength(tries);
});
