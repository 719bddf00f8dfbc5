/**
 * The conformance suite: the guarantees of `store.ts` as test cases, run alike against every back end. Each case gets a
 * site of its own: a namespace or file that nobody else uses, to which it may open several connections.
 */
import { it } from "vitest";
import type { Store, StoreOptions } from "../store.ts";

/** Opens one more connection to the site's store and namespace. */
export type StoreFactory = (options?: StoreOptions) => Promise<Store>;

export interface Site {
  open: StoreFactory;
  /** Opens another namespace of the same back end; `beside` is a suffix of the site's own namespace. */
  openBeside: (beside: string, options?: StoreOptions) => Promise<Store>;
  /** Closes all that was opened and removes what was written. */
  dispose: () => Promise<void>;
}

export interface StoreHarness {
  readonly name: string;
  /**
   * Whether `open` gives a further connection each time. A store in memory is one connection: there `open` gives the same
   * store again, so that the cases with several consumers still run, with several callers of one connection.
   */
  readonly connections: "many" | "one";
  fresh: () => Promise<Site>;
}

/** Registers one case that gets a site and leaves nothing behind. */
export function siteCase(
  harness: StoreHarness,
  title: string,
  run: (site: Site) => Promise<void>,
  timeoutMs = 30_000,
): void {
  // oxlint-disable-next-line vitest/expect-expect -- the assertions are the caller's
  it(
    // oxlint-disable-next-line vitest/valid-title -- so is the title
    title,
    async () => {
      const site = await harness.fresh();
      try {
        await run(site);
      } finally {
        await site.dispose();
      }
    },
    timeoutMs,
  );
}

/** A clock that only the test moves. All connections of a case that open with it share one time. */
export class HandClock {
  /** Unix milliseconds. */
  ms = 1_781_234_567_890;
  readonly options: StoreOptions = { frozenNow: () => this.ms };

  advance(ms: number): void {
    this.ms += ms;
  }
}

/** Waits for a fact; throws with `what` when it has not come true within `ms`. */
export async function until(what: string, fact: () => boolean | Promise<boolean>, ms = 5000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await fact())) {
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Opens three connections with the same options. */
export function openThree({ open }: Site, options?: StoreOptions): Promise<[Store, Store, Store]> {
  return Promise.all([open(options), open(options), open(options)]);
}

/** The whole numbers from `from` up to, not including, `to`. */
export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** What the call failed with, thrown at once or by its promise; undefined when it did not fail. */
export async function failureOf(call: () => unknown): Promise<unknown> {
  try {
    await call();
    return undefined;
  } catch (error) {
    return error;
  }
}
