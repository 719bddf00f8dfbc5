// The pool that the benchmarks use: sessions with a payload of 75 bytes and three tags.
import { z } from "zod";
import { definePool } from "../../src/contracts/pool.ts";
import type { Fleet } from "../../src/index.ts";

const Session = z.object({ user: z.string(), cookie: z.string() });
const Tags = z.object({ site: z.string(), region: z.string(), tier: z.string() });
export type SessionTags = z.infer<typeof Tags>;

export function sessionPool(name: string) {
  return definePool(name, { payload: Session, tags: Tags });
}

export function session(index: number): z.infer<typeof Session> {
  const user = `user-${String(index).padStart(8, "0")}`;
  return { user, cookie: user.padEnd(39, "0123456789abcdef") };
}

/** One in a hundred is of the site `rare`, one of `busy`; the others are spread over twenty sites. */
export function siteOf(index: number): string {
  if (index % 100 === 7) return "rare";
  return index % 100 === 8 ? "busy" : `site-${index % 20}`;
}

/** As programs put them: a thousand in a call. */
export async function fill(
  fleet: Fleet,
  pool: ReturnType<typeof sessionPool>,
  count: number,
  tags: (index: number) => SessionTags,
): Promise<void> {
  for (let at = 0; at < count; at += 1000) {
    const items = Array.from({ length: Math.min(1000, count - at) }, (_, index) => ({
      payload: session(at + index),
      tags: tags(at + index),
    }));
    await fleet.pool(pool).putMany(items);
  }
}
