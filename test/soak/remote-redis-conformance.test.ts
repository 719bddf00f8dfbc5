// Soak: the same suite, through a master on the Redis that the whole test run shares.
import { inject } from "vitest";
import { conformance } from "../../src/store/conformance/suite.ts";
import { remoteHarness } from "../support/served.ts";
import { redisHarness } from "../support/stores.ts";

conformance(remoteHarness(redisHarness("Redis", () => inject("redisUrl"))));
