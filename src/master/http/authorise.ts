import { createHash, timingSafeEqual } from "node:crypto";
import { RequestProblem } from "./request-problem.ts";

/** Who asks. */
export interface Identity {
  /** For histories and logs; never the token. */
  name: string;
}

/** So many wrong tokens from one address within the window, and it has to wait. Right ones always pass. */
const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;
/** Addresses that are remembered at most. */
const MAX_ADDRESSES = 10_000;

/**
 * Bearer tokens only, from the `Authorization` header only. They are compared as hashes and in constant time. Whoever tries wrong ones again
 * and again is answered 429; that is counted by address, and delays nobody who has the right one.
 */
export class Authority {
  readonly #digest: Buffer;
  readonly #failures = new Map<string, { count: number; since: number }>();

  constructor(token: string) {
    this.#digest = digestOf(token);
  }

  /** Throws 401, or 429 with how long to wait. `nowMs` is monotonic. */
  authorise(authorization: string | null | undefined, address: string, nowMs: number): Identity {
    const token = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
    if (token !== undefined && timingSafeEqual(digestOf(token), this.#digest)) return { name: "admin" };
    const known = this.#failures.get(address);
    const current =
      known !== undefined && nowMs - known.since < WINDOW_MS ? known : { count: 0, since: nowMs };
    if (current.count >= MAX_FAILURES) {
      const seconds = Math.ceil((current.since + WINDOW_MS - nowMs) / 1000);
      throw new RequestProblem(
        429,
        "FLEET_TOKEN_REFUSED",
        `too many wrong tokens; try again in ${seconds} s`,
        {
          headers: { "retry-after": String(seconds) },
        },
      );
    }
    // A request without any token is no attempt at one.
    if (token !== undefined) this.#remember(address, { ...current, count: current.count + 1 });
    throw new RequestProblem(
      401,
      "FLEET_TOKEN_REFUSED",
      token === undefined
        ? "a token is needed: send the header Authorization: Bearer TOKEN"
        : "the token is not this master's; it is what FLEET_TOKEN was at its start, else what its .fleet/token holds",
      { headers: { "www-authenticate": 'Bearer realm="fleet"' } },
    );
  }

  #remember(address: string, failures: { count: number; since: number }): void {
    this.#failures.delete(address);
    this.#failures.set(address, failures);
    if (this.#failures.size <= MAX_ADDRESSES) return;
    const [oldest] = this.#failures.keys();
    if (oldest !== undefined) this.#failures.delete(oldest);
  }
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
