// What only this back end has; the port's guarantees are in the conformance suite.
import { expect, onTestFinished, test } from "vitest";
import { openMemory } from "./database.ts";
import { createLimits } from "./state-limits.ts";
import { createWriter } from "./writer.ts";

test("keys are forgotten in steps, between which others' calls come in", async () => {
  let now = 1_781_234_567_890;
  const db = await openMemory();
  onTestFinished(() => db.close());
  const writer = createWriter(db, { deadlineMs: 10_000 });
  const limits = createLimits({ db, ns: "", clock: () => now, writer });
  const windows = [{ limit: 1, perMs: 100, burst: 1 }];
  const keys = Array.from({ length: 4500 }, (_, i) => `k${i}`);
  await Promise.all(
    keys.map((key) => limits.take({ name: "l", key, windows, cost: 1, withinMs: 0, request: key })),
  );
  now += 100;
  const sweep = limits.sweep();
  const left = await writer.read(() => db.sql("SELECT count(*) FROM limits").get<[number]>()?.[0]);
  expect(left).toBeGreaterThan(0);
  expect(await sweep).toEqual({ forgotten: 4500 });
});
