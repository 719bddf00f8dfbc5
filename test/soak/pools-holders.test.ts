// Long (`npm run soak`): 10 000 claims on each store. 900 run in `npm test` (test/pools-holders.test.ts).
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Children, prepareChildren } from "../support/children.ts";
import { measured } from "../support/heal-fleet.ts";
import { PLACES } from "../support/places.ts";
import { poolHolders, problemsOf } from "../support/pool-holders.ts";

const SEED = Number(process.env["FLEET_SEED"] ?? Math.floor(Math.random() * 1e9));

let children: Children;
beforeAll(async () => {
  children = await prepareChildren();
});
afterAll(() => children.dispose());

describe.each(PLACES)("on $name", (place) => {
  test("10 000 claims among kills, freezes and wrong clocks: never two holders", async () => {
    console.log(`${place.name}, FLEET_SEED=${SEED}`);
    const report = await poolHolders(children, place, {
      seed: SEED,
      claims: 10_000,
      kills: 30,
      everyMs: 300,
    });
    const { claims, kills, freezes, late, lateUnmeant, lateAtStore, unanswered } = report;
    measured(
      `never two holders, ${place.name}`,
      JSON.stringify({ claims, kills, freezes, late, lateUnmeant, lateAtStore, unanswered }),
    );
    expect(
      problemsOf(report, { claims: 10_000, kills: 30, freezes: 50, late: 500, lateUnmeant: 50 }),
    ).toEqual([]);
  }, 900_000);
});
