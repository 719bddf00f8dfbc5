// Short (`npm test`): a fleet over three hosts, which are network namespaces. Skipped only where these are not permitted, with the reason.
import { describe, expect, test } from "vitest";
import { whyNoHosts } from "./support/hosts.ts";
import { cutOneOfThree, MOVED_MS, type Way } from "./support/three-hosts.ts";

const WAYS: readonly Way[] = ["direct", "via the master", "embedded"];
const reason = whyNoHosts();

describe("a master, and workers on two other hosts", () => {
  test.for(WAYS)(
    "%s: data flows; a host that is cut off loses its slots and writes nothing late; back again, it takes part",
    { timeout: 120_000 },
    async (way, { skip }) => {
      skip(reason !== undefined, reason);
      const { movedMs, late, moved } = await cutOneOfThree(way);
      expect(movedMs).toBeLessThan(MOVED_MS);
      expect(moved).toBeGreaterThan(1);
      expect(late).toEqual([]);
    },
  );
});
