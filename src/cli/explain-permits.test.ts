import { describe, expect, it } from "vitest";
import { checkQueueRateLimit } from "../contracts/rate-limit.ts";
import { QUEUE_DEFAULTS } from "../contracts/queue.ts";
import type { Manifest } from "../protocol/manifest.ts";
import { limitsOf, waitsForPermits } from "./explain-permits.ts";

const NOW = 1_900_000_000_000;
const limit = checkQueueRateLimit("q", "job", { name: "api", limit: 50, perSeconds: 1, burst: 4, cost: 2 });
const taken = (available: number) => ({
  key: "",
  windows: [{ limit: 50, perMs: 1000, burst: 4, available }],
  freeAt: NOW + 3000,
});

describe("what waits for a rate limit", () => {
  it("says so while no task could have its permits at once", () => {
    expect(waitsForPermits(limit, taken(1), NOW)).toEqual({
      code: "rate-limit",
      message:
        'tasks wait for permits of rate limit "api" (50 per 1 s); what is taken and reserved of it is over in 3 s',
    });
    expect(waitsForPermits({ ...limit, key: "eu" }, taken(0), NOW)?.message).toContain('"api", key "eu"');
    expect(waitsForPermits(limit, taken(2), NOW)).toBeUndefined();
    expect(waitsForPermits(limit, undefined, NOW)).toBeUndefined();
  });

  it("knows the limits of queues from what workers have published, also those that know of none", () => {
    const { rateLimit: _, ...before } = QUEUE_DEFAULTS;
    const tasks = (queue: string, options: object) => ({ tasks: { queue, options } }) as Manifest;
    const manifests = [
      tasks("job", { ...QUEUE_DEFAULTS, rateLimit: limit }),
      tasks("plain", QUEUE_DEFAULTS),
      tasks("old", before),
      { tasks: null } as Manifest,
    ];
    expect([...limitsOf({ w: manifests })]).toEqual([["job", limit]]);
  });
});
