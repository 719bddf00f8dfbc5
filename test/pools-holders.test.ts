// Short (`npm test`): 900 claims by processes with wrong clocks that are frozen, killed and started again. 10 000 of them are in
// test/soak/pools-holders.test.ts. The plan of faults of a run can be had again with the seed that it prints: FLEET_SEED=….
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Children, prepareChildren } from "./support/children.ts";
import { PLACES } from "./support/places.ts";
import { poolHolders, problemsOf } from "./support/pool-holders.ts";

const SEED = Number(process.env["FLEET_SEED"] ?? Math.floor(Math.random() * 1e9));

let children: Children;
beforeAll(async () => {
  children = await prepareChildren();
});
afterAll(() => children.dispose());

describe.each(PLACES)("on $name", (place) => {
  test("an item has never two holders, whatever becomes of those who hold it", async () => {
    console.log(`${place.name}, FLEET_SEED=${SEED}`);
    const report = await poolHolders(children, place, { seed: SEED, claims: 900, kills: 3, everyMs: 120 });
    expect(problemsOf(report, { claims: 900, kills: 3, freezes: 4, late: 20, lateUnmeant: 1 })).toEqual([]);
  }, 90_000);
});
