import { expect, it } from "vitest";
import { machineMs, monotonicMs } from "../internal/timers.ts";
import type { FromHost } from "../protocol/host.ts";
import { KeptLeases } from "./kept-leases.ts";

function leases(marked: Record<string, number> = {}) {
  const said: FromHost[] = [];
  const kept = new KeptLeases(
    (message) => said.push(message),
    (place, number) => marked[`${place} ${number}`] ?? 0,
  );
  const heard: string[] = [];
  const keep = (id: string) =>
    kept.keep({
      kind: "pool",
      name: "p",
      id,
      token: `token of ${id}`,
      holdMs: 1000,
      renew: () => Promise.resolve(true),
      renewed: (untilMs) => heard.push(`${id} ${Math.round((untilMs - monotonicMs()) / 100)}`),
      lost: () => heard.push(`${id} lost`),
    });
  return { kept, keep, said: () => said.splice(0), heard: () => heard.splice(0) };
}

it("tells what it uses once, and which leases are to be kept for how long", () => {
  const { kept, keep, said } = leases();
  kept.uses("pool", "p");
  kept.uses("lock", "p");
  kept.uses("pool", "p");
  expect(said()).toEqual([
    { type: "uses", kind: "pool", name: "p" },
    { type: "uses", kind: "lock", name: "p" },
  ]);
  const [a] = [keep("a"), keep("b")];
  const lease = { kind: "pool", name: "p", holdMs: 1000 };
  expect(said()).toEqual([
    { type: "keep", lease: { ...lease, number: 1, place: 0, id: "a", token: "token of a" } },
    { type: "keep", lease: { ...lease, number: 2, place: 1, id: "b", token: "token of b" } },
  ]);
  a.letGo(false);
  a.letGo(true);
  // The place is used again, the number is not.
  keep("c");
  expect(said()).toEqual([
    { type: "let-go", number: 1, over: false },
    { type: "keep", lease: { ...lease, number: 3, place: 0, id: "c", token: "token of c" } },
  ]);
});

it("passes on what it hears of those that it still holds", () => {
  const { kept, keep, heard } = leases();
  const a = keep("a");
  keep("b");
  const until = machineMs() + 5000;
  const news = (number: number, at: number | null) => ({ number, place: 0, until: at });
  kept.hear([news(1, until), news(2, null), news(3, until)]);
  expect(heard()).toEqual(["a 50", "b lost"]);
  a.letGo(true);
  kept.hear([news(1, null)]);
  expect(heard()).toEqual([]);
});

it("knows what its supervisor has noted, though it was not heard of yet", () => {
  const { keep } = leases({ "0 1": machineMs() + 5000 });
  expect(keep("a").knownUntil() - monotonicMs()).toBeCloseTo(5000, -2);
  expect(keep("b").knownUntil()).toBe(0);
});
