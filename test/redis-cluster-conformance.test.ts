// Short settings; part of `npm test`. Runs on a cluster of three masters of its own, always with a namespace.
import { afterAll, beforeAll } from "vitest";
import { conformance } from "../src/store/conformance/suite.ts";
import { type RedisCluster, startRedisCluster } from "./support/redis.ts";
import { redisHarness } from "./support/stores.ts";

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startRedisCluster();
});
afterAll(() => cluster.stop());

conformance(redisHarness("Redis Cluster", () => cluster.url));
