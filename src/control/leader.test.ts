import { expect, test, vi } from "vitest";
import { SILENT } from "../internal/log.ts";
import { openStore } from "../store/open.ts";
import { Leader } from "./leader.ts";

test("forgets the probes of workers that are gone, and topics that are silent for a week", async () => {
  let now = 1_781_234_567_890;
  const store = await openStore("sqlite::memory:", { frozenNow: () => now });
  const publish = async (topic: string) =>
    (await store.events.publish({ topic, source: "s", payload: "1" })).seq;
  for (const topic of ["fleet.probe.gone", "fleet.probe.here", "orders", "silent"]) await publish(topic);
  const known = async () => {
    const watch = store.events.subscribe({ pattern: "*" }, () => undefined);
    const topics = [...(await watch.baselines).keys()].toSorted();
    await watch.close();
    return topics;
  };
  const sweep = async (left: string[]) => {
    const leader = new Leader({ store, candidate: "a", leaseMs: 3_000, sweepMs: 20_000, log: SILENT });
    await leader.turn(undefined);
    await vi.waitFor(async () => expect(await known()).toEqual(left));
    await leader.resign();
  };
  now += 3_600_000;
  await publish("fleet.probe.here");
  await sweep(["fleet.probe.here", "orders", "silent"]);
  now += 6 * 86_400_000;
  expect(await publish("orders")).toBe(2);
  await publish("fleet.probe.here");
  now += 86_400_000 - 3_600_000;
  await sweep(["orders"]);
  expect(await publish("silent")).toBe(1);
  expect(await publish("orders")).toBe(3);
  await store.close();
});
