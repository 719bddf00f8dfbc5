import { messageOf } from "../errors.ts";
import { backoffMs } from "../internal/backoff.ts";
import { Throttle, type Log } from "../internal/log.ts";
import { after, machineMs, monotonicMs, sleep, type Timer } from "../internal/timers.ts";
import type { LeaseKind, LeaseMessage, LeaseToKeep } from "../protocol/host.ts";
import type { PoolStore } from "../store/pool-store.ts";
import type { LockStore } from "../store/state-store.ts";
import type { LeaseHost } from "./hosts.ts";

const RETRY = { baseMs: 100, capMs: 2000, jitter: 0.3 };
/** A lease is renewed with each beat, and at a third of its hold: two renewals may fail before it ends. */
const PART = 3;
const SOONEST_MS = 10;
/** What a killed process had sent may reach the store after its end was told: so long after that, it is told once more. */
const AGAIN_MS = 1000;
/** How many names are told the store at once when a host that used many has ended. */
const AT_ONCE = 8;

export interface ChildLeaseKeeperParts {
  pools: Pick<PoolStore, "keep" | "lose" | "change">;
  locks: Pick<LockStore, "keep" | "lose" | "release">;
  beatMs: number;
  log: Log;
}

interface Used {
  kind: LeaseKind;
  name: string;
}

/** What a host holds, as it has said. */
interface Holder {
  host: LeaseHost;
  used: Used[];
  kept: Map<number, Kept>;
}

interface Kept {
  holder: Holder;
  lease: LeaseToKeep;
}

/** All leases of one pool, or locks of one name, that are to be kept. */
interface Group extends Used {
  kept: Set<Kept>;
  timer: Timer | undefined;
  /** When the timer is due. */
  dueAt: number;
  busy: boolean;
}

/**
 * Keeps the leases on items and locks that the children of this worker have asked to be extended: one call per pool or lock name and
 * beat, for all of them, so user code that keeps a child's event loop busy costs it no lease. When a child has ended, however it did,
 * what it held is released at once.
 */
export class ChildLeaseKeeper {
  readonly #parts: ChildLeaseKeeperParts;
  readonly #trouble = new Throttle(10_000);
  readonly #holders = new Map<string, Holder>();
  readonly #groups = new Map<string, Group>();
  readonly #losing = new Set<Promise<void>>();
  readonly #stopped = new AbortController();
  readonly #over = new AbortController();

  constructor(parts: ChildLeaseKeeperParts) {
    this.#parts = parts;
  }

  hear(host: LeaseHost, message: LeaseMessage): void {
    const holder = this.#holderOf(host);
    switch (message.type) {
      case "uses":
        holder.used.push({ kind: message.kind, name: message.name });
        return;
      case "keep":
        return this.#keep(holder, message.lease);
      case "let-go": {
        const kept = holder.kept.get(message.number);
        if (kept === undefined) return;
        this.#drop(kept);
        if (!message.over) void this.#release(kept);
      }
    }
  }

  /** A host has ended. `orderly`: it had given back what it held, as far as the store answered. */
  gone(name: string, orderly: boolean): void {
    const holder = this.#holders.get(name);
    if (holder === undefined) return;
    this.#holders.delete(name);
    for (const kept of holder.kept.values()) this.#drop(kept);
    const losing = this.#loseAll(name, holder.used, orderly);
    this.#losing.add(losing);
    void losing.finally(() => this.#losing.delete(losing));
  }

  /** Waits until the store knows of all hosts that have ended. May take as long as the store does. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    for (const { timer } of this.#groups.values()) timer?.cancel();
    await Promise.allSettled(this.#losing);
  }

  /** Ends what `stop` still waits for. */
  giveUp(): void {
    this.#over.abort();
  }

  #holderOf(host: LeaseHost): Holder {
    const known = this.#holders.get(host.holder);
    if (known !== undefined) return known;
    const made: Holder = { host, used: [], kept: new Map() };
    this.#holders.set(host.holder, made);
    return made;
  }

  #keep(holder: Holder, lease: LeaseToKeep): void {
    const { kind, name, number } = lease;
    const key = keyOf(lease);
    const group = this.#groups.get(key) ?? {
      kind,
      name,
      kept: new Set(),
      timer: undefined,
      dueAt: Number.POSITIVE_INFINITY,
      busy: false,
    };
    this.#groups.set(key, group);
    const kept = { holder, lease };
    holder.kept.set(number, kept);
    group.kept.add(kept);
    this.#arm(group, monotonicMs() + this.#pauseOf(lease));
  }

  #drop(kept: Kept): void {
    const { holder, lease } = kept;
    holder.kept.delete(lease.number);
    const key = keyOf(lease);
    const group = this.#groups.get(key);
    group?.kept.delete(kept);
    if (group === undefined || group.kept.size > 0) return;
    group.timer?.cancel();
    this.#groups.delete(key);
  }

  #pauseOf({ holdMs }: LeaseToKeep): number {
    return Math.max(SOONEST_MS, Math.min(this.#parts.beatMs, holdMs / PART));
  }

  #arm(group: Group, at: number): void {
    if (this.#stopped.signal.aborted || at >= group.dueAt) return;
    group.timer?.cancel();
    group.dueAt = at;
    group.timer = after(at - monotonicMs(), () => void this.#turn(group), { unref: true });
  }

  async #turn(group: Group): Promise<void> {
    group.dueAt = Number.POSITIVE_INFINITY;
    // The call that is under way arms the next turn.
    if (group.busy) return;
    group.busy = true;
    const startedAt = monotonicMs();
    const started = machineMs();
    const all = [...group.kept];
    try {
      this.#tell(all, await this.#renew(group, all), started);
    } catch (error) {
      this.#say("leases could not be renewed; trying again", group, error);
    } finally {
      group.busy = false;
    }
    let pause = Number.POSITIVE_INFINITY;
    for (const { lease } of group.kept) pause = Math.min(pause, this.#pauseOf(lease));
    if (pause !== Number.POSITIVE_INFINITY) this.#arm(group, startedAt + pause);
  }

  /** Answers which of them still hold. */
  async #renew({ kind, name }: Used, all: readonly Kept[]): Promise<boolean[]> {
    const { pools, locks } = this.#parts;
    if (kind === "lock")
      return locks.keep({
        name,
        leases: all.map(({ lease: { id: key, token, holdMs } }) => ({ key, token, holdMs })),
      });
    const holders = [...new Set(all.map(({ holder }) => holder.host.holder))];
    const { held } = await pools.keep({ pool: name, holders });
    const tokens = new Set(held.flat().map(({ token }) => token));
    return all.map(({ lease }) => tokens.has(lease.token));
  }

  #tell(all: readonly Kept[], held: readonly boolean[], started: number): void {
    const news = new Map<Holder, { number: number; place: number; until: number | null }[]>();
    for (const [index, kept] of all.entries()) {
      const { holder, lease } = kept;
      // Let go meanwhile; its place may be another one's by now.
      if (holder.kept.get(lease.number) !== kept) continue;
      const { number, place, holdMs } = lease;
      const until = held[index] === true ? started + holdMs : null;
      if (until === null) this.#drop(kept);
      const list = news.get(holder);
      if (list === undefined) news.set(holder, [{ number, place, until }]);
      else list.push({ number, place, until });
    }
    for (const [{ host }, leases] of news) host.tell({ type: "kept", leases });
  }

  /** Its holder is done with it, and could not tell the store. Items of a pool are renewed by holder, so it would not end by itself. */
  async #release({ holder, lease }: Kept): Promise<void> {
    const { pools, locks } = this.#parts;
    const { kind, name, id, token } = lease;
    await this.#until("a lease could not be given back; trying again", lease, async () => {
      // What it still holds then is released with its end.
      if (this.#holders.get(holder.host.holder) !== holder) return;
      if (kind === "lock") await locks.release({ name, key: id, token });
      else await pools.change({ pool: name, id, token, change: { do: "release" } });
    });
  }

  async #loseAll(holder: string, used: readonly Used[], orderly: boolean): Promise<void> {
    await this.#loseOnce(holder, used);
    if (orderly || used.length === 0) return;
    await sleep(AGAIN_MS, this.#stopped.signal);
    await this.#loseOnce(holder, used);
  }

  async #loseOnce(holder: string, used: readonly Used[]): Promise<void> {
    const left = [...used];
    const next = async () => {
      for (let one = left.pop(); one !== undefined; one = left.pop()) await this.#lose(holder, one);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
  }

  async #lose(holder: string, used: Used): Promise<void> {
    const { pools, locks, log } = this.#parts;
    const { kind, name } = used;
    await this.#until("what an ended process held could not be released; trying again", used, async () => {
      const holders = [holder];
      const { released } =
        kind === "lock" ? await locks.lose({ name, holders }) : await pools.lose({ pool: name, holders });
      if (released > 0) log.info("what an ended process held was released", { [kind]: name, released });
    });
  }

  /** Tries until it succeeds, or until all is given up. */
  async #until(trouble: string, used: Used, call: () => Promise<void>): Promise<void> {
    const over = this.#over.signal;
    for (let failures = 1; !over.aborted; failures++) {
      try {
        return await call();
      } catch (error) {
        this.#say(trouble, used, error);
        await sleep(backoffMs(failures, RETRY), over);
      }
    }
  }

  #say(message: string, { kind, name }: Used, error: unknown): void {
    this.#trouble.pass(monotonicMs(), (swallowed) =>
      this.#parts.log.warn(message, {
        [kind]: name,
        error: messageOf(error),
        ...(swallowed > 0 ? { failures: swallowed } : {}),
      }),
    );
  }
}

function keyOf({ kind, name }: Used): string {
  return `${kind} ${name}`;
}
