import { describe } from "vitest";
import { edgeConformance } from "./edges.ts";
import { eventConformance } from "./events.ts";
import type { StoreHarness } from "./harness.ts";
import { poolConformance } from "./pools.ts";
import { queueConformance } from "./queues.ts";
import { registryConformance } from "./registry.ts";
import { stateConformance } from "./state.ts";
import { storeConformance } from "./store.ts";
import { streamConformance } from "./streams.ts";

/** Everything that the port promises, against one back end. */
export function conformance(harness: StoreHarness): void {
  // oxlint-disable-next-line vitest/valid-title -- the back end's name
  describe(harness.name, () => {
    storeConformance(harness);
    streamConformance(harness);
    queueConformance(harness);
    poolConformance(harness);
    eventConformance(harness);
    edgeConformance(harness);
    registryConformance(harness);
    stateConformance(harness);
  });
}
