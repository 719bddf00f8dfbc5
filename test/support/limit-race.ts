// A rate limit that several processes share, by the store's own times of its grants.
import { mostWithin } from "../../src/store/conformance/state-limits-random.ts";
import type { Children } from "./children.ts";
import type { LimitTakerInput, LimitTakerMessage } from "./children/limit-taker.ts";
import type { Place } from "./places.ts";
import { temporaryFolder } from "./stores.ts";

export interface LimitRace {
  /** Most grants in any span of one second that begins at a grant. */
  most: number;
  /** Grants as a share of what the limit allows between the first and the last. */
  used: number;
  /** Grants of each process. */
  each: number[];
}

export async function limitRace(
  children: Children,
  place: Place,
  { limit, seconds, processes }: { limit: number; seconds: number; processes: number },
): Promise<LimitRace> {
  const folder = temporaryFolder();
  const { url, namespace } = place.at(folder.path);
  const input: LimitTakerInput = { url, namespace, limit, seconds, takers: 4 };
  const all = Array.from({ length: processes }, () =>
    children.start<LimitTakerMessage>("limit-taker", input),
  );
  await Promise.all(
    all.map((child) => child.next((message): message is { opened: true } => "opened" in message)),
  );
  for (const child of all) child.send("go");
  const told = await Promise.all(
    all.map((child) => child.next((message): message is { grants: number[] } => "grants" in message)),
  );
  await Promise.all(all.map(({ ended }) => ended));
  folder.remove();
  const grants = told.flatMap((one) => one.grants);
  const spanMs = Math.max(...grants) - Math.min(...grants);
  return {
    most: mostWithin(
      grants.map((at) => ({ at, cost: 1 })),
      1000,
    ),
    used: grants.length / ((spanMs * limit) / 1000 + 1),
    each: told.map((one) => one.grants.length),
  };
}
