import type { AcquireResult, CounterOp, LimitWindow } from "../state-store.ts";
import type { Store } from "../store.ts";

export const HOLD_MS = 10_000;
export const PATIENCE_MS = 3000;

let requests = 0;

/** One lock as seen by one connection: the port's calls with what most cases leave alone filled in. */
export class LockDriver {
  readonly ref: { name: string; key: string };
  readonly #store: Store;

  constructor(store: Store, key = "", name = "l") {
    this.#store = store;
    this.ref = { name, key };
  }

  acquire(
    request: string,
    more: { holder?: string; by?: string; holdMs?: number } = {},
  ): Promise<AcquireResult> {
    return this.#store.state.locks.acquire({ ...this.ref, ...this.#who(request), ...more });
  }

  /** Asks, and stands in line where it is held. */
  wait(request: string, more: { holder?: string; by?: string } = {}): Promise<AcquireResult> {
    const waitFor = { patienceMs: PATIENCE_MS };
    return this.#store.state.locks.acquire({ ...this.ref, ...this.#who(request), ...more, waitFor });
  }

  /** The token of a grant that must be given. */
  async get(request = `r${++requests}`, more: { holder?: string; holdMs?: number } = {}): Promise<string> {
    const answer = await this.acquire(request, more);
    if (answer.outcome !== "granted") throw new Error(`not granted to ${request}: ${JSON.stringify(answer)}`);
    return answer.token;
  }

  /** Where a request stands in line, asking again. */
  async place(request: string): Promise<number | null | "granted"> {
    const answer = await this.wait(request);
    return answer.outcome === "granted" ? "granted" : answer.position;
  }

  release(token: string): Promise<"released" | "lease-lost"> {
    return this.#store.state.locks.release({ ...this.ref, token });
  }

  async extend(token: string, holdMs = HOLD_MS): Promise<number | "lease-lost"> {
    const answer = await this.#store.state.locks.extend({ ...this.ref, token, holdMs });
    return answer.outcome === "extended" ? answer.until : answer.outcome;
  }

  leave(request: string): Promise<void> {
    return this.#store.state.locks.leave({ ...this.ref, request });
  }

  #who(request: string) {
    return { request, holder: `h-${request}`, by: `by ${request}`, holdMs: HOLD_MS };
  }
}

/** Numbers the changes of one producer, as every caller of the port must. */
export class Ops {
  #seq = 0;
  readonly #producer: string;

  constructor(producer: string) {
    this.#producer = producer;
  }

  get next(): CounterOp {
    return { producer: this.#producer, seq: ++this.#seq };
  }

  /** The same operation again, as after a lost answer. */
  get last(): CounterOp {
    return { producer: this.#producer, seq: this.#seq };
  }
}

/** One limit as seen by one connection. */
export class LimitDriver {
  readonly ref: { name: string; key: string };
  readonly windows: readonly LimitWindow[];
  readonly #store: Store;
  /** Request of each grant, by its time; the last is the newest. */
  readonly #granted = new Map<number, string[]>();

  constructor(store: Store, windows: readonly LimitWindow[], key = "", name = "l") {
    this.#store = store;
    this.windows = windows;
    this.ref = { name, key };
  }

  async take({ cost = 1, withinMs = 0, request = `r${++requests}` } = {}) {
    const { limits } = this.#store.state;
    const answer = await limits.take({ ...this.ref, windows: this.windows, cost, withinMs, request });
    const { outcome, at } = answer;
    if (outcome === "granted") this.#granted.set(at, [...(this.#granted.get(at) ?? []), request]);
    return answer;
  }

  /** How many are granted one after another now, of `n`. */
  async granted(n: number): Promise<number> {
    let granted = 0;
    for (let i = 0; i < n; i++) if ((await this.take()).outcome === "granted") granted += 1;
    return granted;
  }

  /** The newest grant of this time. */
  giveBack(at: number, cost = 1) {
    const request = this.#granted.get(at)?.at(-1) ?? "never";
    return this.#store.state.limits.giveBack({ ...this.ref, windows: this.windows, cost, at, request });
  }
}

export function perWindow(limit: number, perMs: number, burst = 1): LimitWindow {
  return { limit, perMs, burst };
}
