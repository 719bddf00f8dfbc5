import { describe, expect, it } from "vitest";
import { isFleetError } from "../../errors.ts";
import { redisKeys } from "./keys.ts";
import { keySlot } from "./slot.ts";

const STREAMS = ["x", "url-pinger", "a.b_c-d", "fleet", "events", "stream"];

describe.each(["", "prod", "a.b", "fleet"])("namespace %j", (namespace) => {
  const keys = redisKeys(namespace);

  it.each(STREAMS)("all keys of stream %s are in one slot, that of the stream itself", (name) => {
    const all = Object.values(keys.stream(name)) as string[];
    expect(new Set(all.map(keySlot))).toEqual(new Set([keySlot(keys.stream(name).stream)]));
    expect(new Set(all).size).toBe(all.length);
  });

  it("all keys of the registry are in one slot", () => {
    const all = Object.values(keys.fleet) as string[];
    expect(new Set(all.map(keySlot)).size).toBe(1);
    expect(new Set(all).size).toBe(all.length);
  });

  it.each(STREAMS)("all keys of queue %s are in one slot", (name) => {
    const { base, hand, ...others } = keys.queue(name);
    const all = [...Object.values(others), hand("h"), `${base}task:{x}`, `${base}lane:=a{b}c`, `${base}meta`];
    expect(all.every((key) => key.startsWith(base))).toBe(true);
    expect(new Set(all.map(keySlot))).toEqual(new Set([keySlot(base)]));
    expect(new Set(all).size).toBe(all.length);
    expect(all.filter((key) => !keys.owns(key))).toEqual([]);
  });

  it.each(STREAMS)("all keys of lock, counter and limit %s are each in one slot", (name) => {
    const { base, hint } = keys.lock(name);
    const [counter, limit] = [keys.counter(name), keys.limit(name)];
    const groups = [
      [`${base}meta`, `${base}line:a{b}c`, hint],
      [counter, `${counter}:keys`, `${counter}:op:p`],
      [limit, `${limit}:free`, `${limit}:r:x`],
    ];
    for (const group of groups) expect(new Set(group.map(keySlot)).size).toBe(1);
    const all = groups.flat();
    expect(new Set(all).size).toBe(all.length);
    expect(all.filter((key) => !keys.owns(key))).toEqual([]);
    expect(all.filter((key) => redisKeys("other").owns(key))).toEqual([]);
  });

  it.each(STREAMS)("all keys of pool %s are in one slot", (name) => {
    const { base, ...others } = keys.pool(name);
    const all = [...Object.values(others), `${base}tag:a=%7Bb%7D`, `${base}line:`, `${base}holder:{h}`];
    expect(all.every((key) => key.startsWith(base))).toBe(true);
    expect(new Set(all.map(keySlot))).toEqual(new Set([keySlot(base)]));
    expect(new Set(all).size).toBe(all.length);
    expect(all.filter((key) => !keys.owns(key))).toEqual([]);
  });

  it("different streams spread over the slots", () => {
    const slots = Array.from({ length: 100 }, (_, i) => keySlot(keys.stream(`s${i}`).stream));
    expect(new Set(slots).size).toBeGreaterThan(90);
  });

  it("owns each of its keys, and no other namespace does", () => {
    const others = ["", "prod", "a.b", "axb", "fleet", "prod2", "pro"].filter((other) => other !== namespace);
    const all = [
      ...STREAMS.flatMap((name) => {
        const { stream, meta, quarantine } = keys.stream(name);
        return [stream, meta, quarantine];
      }),
      ...STREAMS.flatMap((name) => {
        const { base } = keys.queue(name);
        return [`${base}meta`, `${base}task:1`, `${base}lane:=k`];
      }),
      ...STREAMS.flatMap((name) => Object.values(keys.pool(name)) as string[]),
      ...Object.values(keys.fleet),
      keys.eventSeqs,
      keys.eventTimes,
    ];
    for (const key of all) {
      expect([key, keys.owns(key)]).toEqual([key, true]);
      for (const other of others)
        expect([other, key, redisKeys(other).owns(key)]).toEqual([other, key, false]);
    }
  });
});

it("the names on the wire are as documented", () => {
  expect(redisKeys("").stream("url-pinger")).toEqual({
    stream: "stream:url-pinger",
    meta: "{stream:url-pinger}:meta",
    quarantine: "{stream:url-pinger}:quarantine",
    hint: "{stream:url-pinger}:hint",
  });
  expect(redisKeys("prod").stream("x").meta).toBe("{prod:stream:x}:meta");
  const { hand, ...queue } = redisKeys("prod").queue("x");
  expect(queue).toEqual({
    base: "{prod:queue:x}:",
    hint: "{prod:queue:x}:hint",
    finished: "{prod:queue:x}:finished",
  });
  expect(hand("h1")).toBe("{prod:queue:x}:hand:h1");
  expect(redisKeys("prod").pool("x")).toEqual({
    base: "{prod:pool:x}:",
    hint: "{prod:pool:x}:hint",
    refills: "{prod:pool:x}:refills",
    left: "{prod:pool:x}:left",
  });
  expect(redisKeys("prod").event("fleet.slot.*")).toBe("prod:event:fleet.slot.*");
  expect(redisKeys("prod").eventSeqs).toBe("{prod:events}:seq");
  expect(redisKeys("prod").fleet.meta).toBe("{prod:fleet}:meta");
});

it.each(["stream", "queue", "pool"])(
  "namespace %s is refused: its registry would be some %s's keys",
  (name) => {
    expect(() => redisKeys(name)).toThrow(/reserved/);
  },
);

it("a namespace outside the grammar is refused", () => {
  expect(() => redisKeys("a:b")).toSatisfy((call: () => void) => {
    try {
      call();
      return false;
    } catch (error) {
      return isFleetError(error, "FLEET_NAME_INVALID");
    }
  });
});
