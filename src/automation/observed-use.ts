import { isFleetError, messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { monotonicMs, sleep } from "../internal/timers.ts";
import type { OnUse } from "../primitives/on-use.ts";
import type { Direction, User } from "../protocol/topology.ts";
import type { EdgeStore } from "../store/edge-store.ts";

/** How long what was counted is gathered before it is told. */
const EVERY_MS = 5000;
/** What is asked for again and again while nothing comes is told again so often: that it is in use, and in case that the store has lost it. */
const AGAIN_MS = 600_000;
/** Most edges that one process counts at a time, and that it tells in one call: who makes up names as it goes floods nobody. */
const MOST = 500;
const MOST_PER_CALL = 200;
/** The end of a process waits no longer than this for its last report. */
const LAST_MS = 1000;

export interface ObservedUseParts {
  store: EdgeStore;
  /** Whose use it is. */
  from: User;
  log: Log;
  /** Default 5000. Tests shorten it. */
  everyMs?: number;
  /** Default 600 000. */
  againMs?: number;
}

interface Edge {
  direction: Direction;
  name: string;
  /** Since the last report. */
  count: number;
  used: boolean;
  /** Own (monotonic) time; undefined where it was never told. */
  toldAt: number | undefined;
}

/**
 * What this process uses, counted in memory and told to the store now and then: at most one call per `everyMs`, and none while nothing is
 * used. A report that may have counted is never repeated, and one that fails disturbs nobody: it is for the graph alone.
 */
export class ObservedUse {
  readonly #parts: ObservedUseParts;
  readonly #edges = new Map<Direction, Map<string, Edge>>();
  #size = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #telling: Promise<void> | undefined;
  #over = false;

  constructor(parts: ObservedUseParts) {
    this.#parts = parts;
  }

  readonly onUse: OnUse = (direction, name, count) => {
    const edge = this.#edges.get(direction)?.get(name) ?? this.#enter(direction, name);
    if (edge === undefined) return;
    edge.count += count;
    edge.used = true;
    if (this.#timer === undefined && this.#isDue(edge)) this.#arm();
  };

  /** Tells what is left, if that is quickly done. Nothing is counted from then on. */
  async close(): Promise<void> {
    if (this.#over) return;
    this.stop();
    const done = new AbortController();
    const last = (async () => {
      await this.#telling;
      await this.#tell();
    })();
    await Promise.race([last.finally(() => done.abort()), sleep(LAST_MS, done.signal)]);
  }

  /** Tells nothing any more. */
  stop(): void {
    this.#over = true;
    clearTimeout(this.#timer);
  }

  #enter(direction: Direction, name: string): Edge | undefined {
    if (this.#over) return undefined;
    // There is room again after the next report, unless there is nothing to report.
    if (this.#size >= MOST && this.#timer === undefined) this.#forget();
    if (this.#size >= MOST) return undefined;
    let named = this.#edges.get(direction);
    if (named === undefined) this.#edges.set(direction, (named = new Map()));
    const edge: Edge = { direction, name, count: 0, used: false, toldAt: undefined };
    named.set(name, edge);
    this.#size += 1;
    return edge;
  }

  /** Those of which everything is told. */
  #forget(): void {
    for (const named of this.#edges.values())
      for (const [name, edge] of named) if (!this.#isDue(edge)) named.delete(name);
    this.#size = [...this.#edges.values()].reduce((sum, { size }) => sum + size, 0);
  }

  #isDue({ count, used, toldAt }: Edge): boolean {
    if (count > 0) return true;
    if (!used) return false;
    return toldAt === undefined || monotonicMs() - toldAt >= (this.#parts.againMs ?? AGAIN_MS);
  }

  #arm(): void {
    if (this.#over) return;
    // Processes that have begun together do not tell together.
    const ms = (this.#parts.everyMs ?? EVERY_MS) * (1 + Math.random() / 4);
    this.#timer = setTimeout(() => {
      this.#telling = this.#tell().finally(() => {
        this.#timer = undefined;
        this.#telling = undefined;
        if (this.#size > MOST / 2) this.#forget();
        if (this.#due().length > 0) this.#arm();
      });
    }, ms);
    this.#timer.unref();
  }

  #due(): Edge[] {
    const all = [...this.#edges.values()].flatMap((named) => [...named.values()]);
    return all.filter((edge) => this.#isDue(edge)).slice(0, MOST_PER_CALL);
  }

  async #tell(): Promise<void> {
    const due = this.#due();
    if (due.length === 0) return;
    const { store, from, log } = this.#parts;
    const edges = due.map(({ direction, name, count }) => ({ direction, name, count }));
    const toldAt = monotonicMs();
    for (const edge of due) Object.assign(edge, { count: 0, used: false, toldAt });
    try {
      await store.observe({ from, edges });
    } catch (error) {
      log.debug("what is used could not be told for the graph", { error: messageOf(error) });
      if (isFleetError(error) && error.outcome === "unknown") return;
      for (const [at, edge] of due.entries()) {
        edge.count += edges[at]?.count ?? 0;
        edge.used = true;
        edge.toldAt = undefined;
      }
    }
  }
}
