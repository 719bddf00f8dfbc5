import { expect, it } from "vitest";
import { Throttle } from "./log.ts";

it("lets one message through per interval and says how many it swallowed", () => {
  const said: number[] = [];
  const throttle = new Throttle(100);
  for (const now of [0, 1, 99, 100, 150, 250]) throttle.pass(now, (swallowed) => said.push(swallowed));
  expect(said).toEqual([0, 2, 1]);
});

it("says the same thing again less often than another", () => {
  const said: string[] = [];
  const throttle = new Throttle(10, 60);
  const steps: [number, string][] = [
    [0, "away"],
    [10, "away"],
    [15, "gone"],
    [20, "away"],
    [25, "away"],
    [84, "away"],
    [85, "away"],
  ];
  for (const [now, what] of steps)
    throttle.pass(now, (swallowed) => said.push(`${now} ${what} ${swallowed}`), what);
  expect(said).toEqual(["0 away 0", "15 gone 1", "25 away 1", "85 away 1"]);
});
