// Short settings; part of `npm test`. Runs on the Redis that the whole test run shares.
import { inject } from "vitest";
import { conformance } from "../src/store/conformance/suite.ts";
import { redisHarness } from "./support/stores.ts";

conformance(redisHarness("Redis", () => inject("redisUrl")));
