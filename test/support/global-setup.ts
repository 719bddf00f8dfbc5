// Starts the throw-away servers that a whole test run shares, and makes what its processes load, and hands their addresses to the workers.
import { joinZod } from "./joined-zod.ts";
import { startRedis } from "./redis.ts";

export default async function setup({
  provide,
}: {
  provide: (key: "redisUrl" | "zodFolder", value: string) => void;
}) {
  const [redis, zod] = await Promise.all([startRedis(), joinZod()]);
  provide("redisUrl", redis.url);
  provide("zodFolder", zod.folder);
  return async () => {
    zod.remove();
    await redis.stop();
  };
}

declare module "vitest" {
  interface ProvidedContext {
    /** Address of the run's own Redis, `redis://127.0.0.1:<port>`. */
    redisUrl: string;
    /** What `zod` is in the projects that tests make: see `joined-zod.ts`. */
    zodFolder: string;
  }
}
