// Short (`npm test`): 3 workers, 24 slots, a random fault every two seconds for half a minute on each store. Ten minutes of it are in
// test/soak/nemesis.test.ts. A run can be had again with the seed that it prints: FLEET_SEED=….
import { describe, expect, test } from "vitest";
import { makeProject } from "./support/cli.ts";
import { nemesisOn, redisPlace, sqlitePlace } from "./support/nemesis-places.ts";
import { expectWhole } from "./support/nemesis-verdict.ts";
import { projectFiles } from "./support/nemesis-fleet.ts";
import { SLOTS, summary } from "./support/nemesis.ts";

const SEED = Number(process.env["FLEET_SEED"] ?? Math.floor(Math.random() * 1e9));

describe.each([
  { name: "Redis", open: () => redisPlace() },
  { name: "a SQLite file", open: (folder: string) => sqlitePlace(folder) },
])("on $name", ({ name, open }) => {
  test("random faults leave every slot running exactly once, and nothing behind", async () => {
    const cwd = makeProject(projectFiles(SLOTS));
    console.log(`${name}, FLEET_SEED=${SEED}`);
    const place = await open(cwd);
    try {
      const report = await nemesisOn(place, { seed: SEED, faults: 15, everyMs: 2000, cwd });
      console.log(`${name}: ${summary(report)}`);
      expect(report.injected).toHaveLength(15);
      expectWhole(report);
    } finally {
      await place.close();
    }
  }, 180_000);
});
