import { expect, it } from "vitest";
import { Throttle } from "./log.ts";

it("lets one message through per interval and says how many it swallowed", () => {
  const said: number[] = [];
  const throttle = new Throttle(100);
  for (const now of [0, 1, 99, 100, 150, 250]) throttle.pass(now, (swallowed) => said.push(swallowed));
  expect(said).toEqual([0, 2, 1]);
});
