// How baselines are read; the port's guarantees are in the conformance suite.
import { expect, test } from "vitest";
import { redisEvents } from "./events.ts";
import { redisKeys } from "./keys.ts";
import type { RedisParts } from "./parts.ts";

type Reply = [cursor: string, found: string[]];

/** Events on a link that answers what the test says, and keeps what it was asked. */
function eventsOn(answer: (args: readonly string[]) => unknown) {
  const asked: (readonly string[])[] = [];
  const listeners: (() => void)[] = [];
  const parts = {
    link: {
      call: (args: readonly string[]) => {
        asked.push(args);
        return Promise.resolve(answer(args));
      },
      onRestored: (listener: () => void) => listeners.push(listener),
    },
    keys: redisKeys(""),
    subscriber: { listen: () => ({ ready: Promise.resolve(), close: () => Promise.resolve() }) },
  };
  const events = redisEvents(parts as unknown as RedisParts);
  const baselines = (pattern: string) => events.subscribe({ pattern }, () => undefined).baselines;
  return { asked, baselines, restore: () => listeners.forEach((listener) => listener()) };
}

test("for a topic its number alone is asked for", async () => {
  const { asked, baselines } = eventsOn(([, , topic]) => (topic === "orders" ? "7" : null));
  expect([...(await baselines("orders"))]).toEqual([["orders", 7]]);
  expect([...(await baselines("other"))]).toEqual([]);
  expect(asked).toEqual([
    ["HGET", "{events}:seq", "orders"],
    ["HGET", "{events}:seq", "other"],
  ]);
});

test("for a pattern all topics are walked through in steps", async () => {
  const steps: Record<string, Reply> = { "0": ["9", ["o.a", "1"]], "9": ["4", []], "4": ["0", ["o.b", "2"]] };
  const { asked, baselines } = eventsOn(([, , cursor]) => steps[cursor as string]);
  expect([...(await baselines("o.*"))]).toEqual([
    ["o.a", 1],
    ["o.b", 2],
  ]);
  expect(asked.map(([command, , cursor, ...rest]) => [command, cursor, ...rest.slice(0, 2)])).toEqual(
    ["0", "9", "4"].map((cursor) => ["HSCAN", cursor, "MATCH", "o.*"]),
  );
});

test("the walk begins anew where the connection was lost: another server knows other places", async () => {
  let lost = false;
  const other: Record<string, Reply> = { "0": ["5", ["o.a", "1"]], "5": ["0", ["o.b", "2", "o.c", "3"]] };
  const { baselines, restore } = eventsOn(([, , cursor]) => {
    if (lost) return other[cursor as string] ?? ["0", []];
    if (cursor === "0") return ["9", ["o.a", "1"]];
    lost = true;
    restore();
    // Of the new server already, which has nothing behind that place.
    return ["0", []];
  });
  expect(Object.fromEntries(await baselines("o.*"))).toEqual({ "o.a": 1, "o.b": 2, "o.c": 3 });
});
