// Starts the throw-away servers that a whole test run shares and hands their addresses to the workers.
import { startRedis } from "./redis.ts";

export default async function setup({ provide }: { provide: (key: "redisUrl", value: string) => void }) {
  const redis = await startRedis();
  provide("redisUrl", redis.url);
  return () => redis.stop();
}

declare module "vitest" {
  interface ProvidedContext {
    /** Address of the run's own Redis, `redis://127.0.0.1:<port>`. */
    redisUrl: string;
  }
}
