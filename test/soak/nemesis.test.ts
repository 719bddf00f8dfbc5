// Soak: random faults for FLEET_SOAK_MINUTES (default 10, a fault every 3 s, so 200 of them) against 3 workers with 24 slots.
import { expect, test } from "vitest";
import { makeProject } from "../support/cli.ts";
import { projectFiles } from "../support/nemesis-fleet.ts";
import { nemesisOn, redisPlace, sqlitePlace } from "../support/nemesis-places.ts";
import { expectWhole } from "../support/nemesis-verdict.ts";
import { SLOTS, slopePerMinute, summary } from "../support/nemesis.ts";

const SEED = Number(process.env["FLEET_SEED"] ?? Math.floor(Math.random() * 1e9));
const MINUTES = Number(process.env["FLEET_SOAK_MINUTES"] ?? 10);
const EVERY_MS = 3000;
/** What a supervisor may grow by, per minute, after the first third: what is resident, and what its heap holds, which is the finer measure. */
const MAX_SLOPE_MB = { resident: 1, heap: 0.3 };

test.each([
  { name: "Redis", open: () => redisPlace() },
  { name: "a SQLite file", open: (folder: string) => sqlitePlace(folder) },
])(
  "random faults on $name for long leave everything whole, and no supervisor grows",
  async ({ name, open }) => {
    const cwd = makeProject(projectFiles(SLOTS));
    console.log(`${name}, FLEET_SEED=${SEED}`);
    const place = await open(cwd);
    try {
      const faults = Math.round((MINUTES * 60_000) / EVERY_MS);
      const report = await nemesisOn(place, { seed: SEED, faults, everyMs: EVERY_MS, cwd });
      const late = report.samples.filter(({ minutes }) => minutes > MINUTES / 3);
      const slope = {
        resident: slopePerMinute(late.map(({ minutes, rssMb }) => ({ minutes, value: rssMb }))),
        heap: slopePerMinute(late.map(({ minutes, heapMb }) => ({ minutes, value: heapMb }))),
      };
      const [first, last] = [late[0], late.at(-1)];
      console.log(
        `${name}, FLEET_SEED=${SEED}: ${summary(report)}\n  supervisor: ${first?.rssMb.toFixed(1)} MB, then ${last?.rssMb.toFixed(1)} MB (${slope.resident.toFixed(3)} MB per minute); its heap ${first?.heapMb.toFixed(2)} MB, then ${last?.heapMb.toFixed(2)} MB (${slope.heap.toFixed(3)} MB per minute); descriptors: ${first?.descriptors}, then ${last?.descriptors}`,
      );
      expectWhole(report);
      expect(late.length).toBeGreaterThan(10);
      expect(slope.resident).toBeLessThan(MAX_SLOPE_MB.resident);
      expect(slope.heap).toBeLessThan(MAX_SLOPE_MB.heap);
    } finally {
      await place.close();
    }
  },
);
