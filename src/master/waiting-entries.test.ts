import { expect, test } from "vitest";
import { Gap } from "./handler.ts";
import { WaitingEntries } from "./waiting-entries.ts";

function rest(waiting: WaitingEntries): (string | number)[] {
  const left: (string | number)[] = [];
  for (let one = waiting.shift(); one !== undefined; one = waiting.shift())
    left.push(one instanceof Gap ? one.missed : one);
  return left;
}

test("says where how many entries were left out", () => {
  const waiting = new WaitingEntries({ entries: 2, bytes: 1000 });
  for (const raw of ["a", "b", "c", "d", "e"]) waiting.add(raw);
  expect(waiting.shift()).toBe("a");
  waiting.add("f");
  waiting.add("g");
  expect(rest(waiting)).toEqual(["b", 3, "f", 1]);
  waiting.add("h");
  expect(rest(waiting)).toEqual(["h"]);
});

test("counts bytes, not characters, and lets one that is too large through alone", () => {
  const waiting = new WaitingEntries({ entries: 100, bytes: 10 });
  for (const raw of ["äääää", "b", "c"]) waiting.add(raw);
  expect(rest(waiting)).toEqual(["äääää", 2]);
  waiting.add("x".repeat(50));
  waiting.add("y");
  expect(rest(waiting)).toEqual(["x".repeat(50), 1]);
});
