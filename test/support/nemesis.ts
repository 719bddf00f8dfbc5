// Breaks a fleet at random, from a seed, and says what came of it.
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Store } from "../../src/store/store.ts";
import { runningSlots } from "./places.ts";
import { descendants } from "./processes.ts";
import {
  emittersOf,
  endWorker,
  processesWith,
  SHORT,
  spawnWorker,
  type Tick,
  tickReader,
  useOf,
  type WorkerProcess,
} from "./nemesis-fleet.ts";

export const WORKERS = 3;
export const SLOTS = 24;
/** Scaling never goes below: these slots are always wanted. */
const BASE_SLOTS = 16;
const MARK = "TEST_NEMESIS";
const PROBE = fileURLToPath(new URL("heap-probe.cjs", import.meta.url));
const HEAP_FILE = "heap-of-w0";

/** Faults of the store, where it can have them. Each resolves when it is over. */
export interface StoreFaults {
  /** Answers nothing for so long. */
  pause?: (ms: number) => Promise<void>;
  forgetScripts?: () => Promise<void>;
  /** Loses all data. */
  wipe?: () => Promise<void>;
}

export interface NemesisOptions {
  seed: number;
  faults: number;
  everyMs: number;
  cwd: string;
  flags: readonly string[];
  store: Store;
  storeFaults: StoreFaults;
}

export interface Injected {
  kind: string;
  /** Store time. */
  at: number;
  /** It found its victim. */
  bit: boolean;
  /** Milliseconds until every slot that is always wanted had emitted again; undefined when one never did. */
  recoveredMs: number | undefined;
}

export interface NemesisReport {
  injected: Injected[];
  ticks: number;
  /** Longest time that any slot that is always wanted did not emit, in milliseconds. */
  worstGapMs: number;
  /** Emits of a run after another run of the same slot had begun. Not counted right after a wipe, which takes all leases along. */
  overlaps: string[];
  /** At the end, from the store: slot to workers. */
  running: Map<string, string[]>;
  /** At the end, from what came out of the stream over two seconds: slot to emitters. */
  emitters: Map<number, Set<string>>;
  /** Leases held by incarnations that are not alive, before the workers were ended. */
  orphanLeases: number;
  /** Leases left after all workers had drained. */
  leasesLeft: number;
  /** How each worker ended that was told to drain; with its last words where that was not exit code 0. */
  exits: string[];
  processesLeft: number[];
  /** Of the supervisor that is never killed: minutes since its start, megabytes (resident, and what its heap holds), open descriptors. */
  samples: { minutes: number; rssMb: number; heapMb: number; descriptors: number }[];
}

/** Numbers from a seed (mulberry32), so that a run can be had again. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Runs `WORKERS` workers with `SLOTS` slots, breaks them `faults` times, lets them settle, looks, and ends them all. */
export async function nemesis(options: NemesisOptions): Promise<NemesisReport> {
  const run = new Nemesis(options);
  try {
    return await run.run();
  } finally {
    await run.end();
  }
}

class Nemesis {
  readonly #options: NemesisOptions;
  readonly #random: () => number;
  readonly #env = { [MARK]: randomUUID() };
  readonly #workers: WorkerProcess[] = [];
  /** Workers that a fault is at work on. */
  readonly #busy = new Set<number>();
  readonly #drained = new Set<WorkerProcess>();
  readonly #ledger: Tick[] = [];
  readonly #wipes: number[] = [];
  readonly #injected: Injected[] = [];
  readonly #incarnations = new Set<string>();
  readonly #samples: NemesisReport["samples"] = [];
  #over = false;

  constructor(options: NemesisOptions) {
    this.#options = options;
    this.#random = seeded(options.seed);
  }

  async run(): Promise<NemesisReport> {
    const { store, faults, everyMs } = this.#options;
    for (let i = 0; i < WORKERS; i++) this.#workers[i] = this.#spawn(i);
    await this.#settled();
    const watching = this.#watch();
    const pending: Promise<void>[] = [];
    const begun = performance.now();
    for (let i = 0; i < faults; i++) {
      await delay(Math.max(0, begun + i * everyMs - performance.now()));
      pending.push(this.#inject());
    }
    await Promise.all(pending);
    await this.#scale(SLOTS);
    await this.#settled();
    this.#over = true;
    await watching;

    const read = tickReader(store);
    this.#ledger.push(...(await read()));
    await delay(2000);
    const last = await read();
    this.#ledger.push(...last);
    const view = await store.registry.view();
    const alive = new Set(
      view.workers.filter(({ expiresAt }) => expiresAt > view.now).map(({ incarnation }) => incarnation),
    );
    const orphanLeases = view.leases.filter(({ incarnation }) => !alive.has(incarnation)).length;
    const running = await runningSlots(store);
    const exits: string[] = [];
    for (const worker of this.#workers) {
      this.#expectAlive();
      worker.child.kill("SIGTERM");
      await worker.ended;
      exits.push(lastWords(worker));
      this.#drained.add(worker);
    }
    return {
      injected: this.#injected.map((fault) => ({ ...fault, recoveredMs: this.#recovery(fault.at) })),
      ticks: this.#ledger.length,
      worstGapMs: this.#worstGap(),
      overlaps: this.#overlaps(),
      running,
      emitters: emittersOf(last),
      orphanLeases,
      leasesLeft: (await store.registry.view()).leases.length,
      exits,
      processesLeft: await this.#leftOver(),
      samples: this.#samples,
    };
  }

  async end(): Promise<void> {
    this.#over = true;
    for (const worker of this.#workers) await endWorker(worker);
    for (const pid of await this.#leftOver()) kill(pid, "SIGKILL");
  }

  #spawn(index: number): WorkerProcess {
    const { cwd, flags } = this.#options;
    const probe = { NODE_OPTIONS: `--require ${PROBE}`, HEAP_PROBE: join(cwd, HEAP_FILE) };
    const env = index === 0 ? { ...this.#env, ...probe } : this.#env;
    return spawnWorker({ cwd, id: `w${index}`, flags, env });
  }

  /** All workers are up, and all slots run, each on one of them. */
  async #settled(): Promise<void> {
    const until = performance.now() + 60_000;
    for (;;) {
      const owners = await runningSlots(this.#options.store).then((slots) => [...slots.values()]);
      this.#expectAlive();
      // One that was just started takes no signal yet.
      const up = this.#workers.every((worker) => worker.output().includes("as worker w"));
      if (up && owners.length === SLOTS && owners.every((workers) => workers.length === 1)) return;
      if (performance.now() > until) {
        throw new Error(
          `the fleet did not settle: ${owners.length} of ${SLOTS} slots run\n${this.#workers.map((worker) => worker.output().slice(-3000)).join("\n----\n")}`,
        );
      }
      await delay(100);
    }
  }

  /** Faults are over: who has ended now did so by itself. */
  #expectAlive(): void {
    const fallen = this.#workers.find((worker) => worker.exit() !== undefined && !this.#drained.has(worker));
    if (fallen !== undefined) throw new Error(`a worker ended by itself: ${lastWords(fallen)}`);
  }

  async #watch(): Promise<void> {
    const { store } = this.#options;
    const read = tickReader(store);
    const begun = performance.now();
    for (let round = 0; !this.#over; round++) {
      try {
        this.#ledger.push(...(await read()));
        if (round % 2 === 0) {
          const { workers } = await store.registry.view();
          for (const { incarnation } of workers) this.#incarnations.add(incarnation);
          const use = useOf(this.#workers[0]?.pid ?? 0);
          const minutes = (performance.now() - begun) / 60_000;
          const heap = join(this.#options.cwd, HEAP_FILE);
          if (use !== undefined && existsSync(heap))
            this.#samples.push({ minutes, ...use, heapMb: Number(readFileSync(heap, "utf8")) });
        }
      } catch {
        // The store is away for the moment: that is one of the faults.
      }
      await delay(1000);
    }
  }

  async #inject(): Promise<void> {
    // First of all: a store that is away makes one wait, and nobody else may choose the same worker meanwhile.
    const at = await this.#options.store.now().catch(() => Date.now());
    const [kind, act] = this.#choose();
    const fault: Injected = { kind, at, bit: false, recoveredMs: undefined };
    this.#injected.push(fault);
    fault.bit = await act();
  }

  #choose(): [string, () => Promise<boolean>] {
    const { pause, forgetScripts, wipe } = this.#options.storeFaults;
    const lease = SHORT.leaseMs;
    const freeze = (0.5 + 1.5 * this.#random()) * lease;
    // The first worker's supervisor is never ended: its memory and descriptors are what is watched.
    const any = this.#free(0, this.#random());
    const mortal = this.#free(1, this.#random());
    const slots = BASE_SLOTS + Math.floor(this.#random() * (SLOTS - BASE_SLOTS + 1));
    const faults: [number, string, () => Promise<boolean>][] = [
      [6, "kill child", () => this.#onWorker(any, (worker) => killChild(worker))],
      [4, "kill supervisor", () => this.#onWorker(mortal, (_, index) => this.#restart(index, "SIGKILL"))],
      [3, "freeze child", () => this.#onWorker(any, (worker) => freezeFor(childOf(worker), freeze))],
      [3, "freeze supervisor", () => this.#onWorker(any, (worker) => freezeFor(worker.pid, freeze))],
      [2, "restart worker", () => this.#onWorker(mortal, (_, index) => this.#restart(index, "SIGTERM"))],
      [3, "scale", () => this.#scale(slots)],
    ];
    const storeFault = (weight: number, kind: string, act: (() => Promise<void>) | undefined) => {
      if (act !== undefined) faults.push([weight, kind, () => act().then(() => true)]);
    };
    storeFault(3, "pause store", pause && (() => pause(1000)));
    storeFault(1, "forget scripts", forgetScripts);
    storeFault(0.5, "wipe", wipe && (() => this.#wipe(wipe)));
    let pick = this.#random() * faults.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, kind, act] of faults) {
      pick -= weight;
      if (pick < 0) return [kind, act];
    }
    throw new Error("unreachable: the weights' sum was passed");
  }

  /** A worker, from number `from` on, that no other fault is at work on. */
  #free(from: number, random: number): number | undefined {
    const free = this.#workers
      .map((_, index) => index)
      .filter((index) => index >= from && !this.#busy.has(index));
    return free[Math.floor(random * free.length)];
  }

  async #onWorker(
    index: number | undefined,
    act: (worker: WorkerProcess, index: number) => Promise<boolean>,
  ): Promise<boolean> {
    if (index === undefined) return false;
    this.#busy.add(index);
    try {
      return await act(this.#workers[index] as WorkerProcess, index);
    } finally {
      this.#busy.delete(index);
    }
  }

  async #restart(index: number, signal: NodeJS.Signals): Promise<boolean> {
    await endWorker(this.#workers[index] as WorkerProcess, signal);
    await delay(this.#random() * 1500);
    if (!this.#over) this.#workers[index] = this.#spawn(index);
    return true;
  }

  async #wipe(wipe: () => Promise<void>): Promise<void> {
    await wipe();
    this.#wipes.push(await this.#options.store.now());
  }

  async #scale(slots: number): Promise<boolean> {
    const { registry } = this.#options.store;
    for (let tries = 0; tries < 50; tries++) {
      try {
        const current = (await registry.view()).desired["ticker"];
        if (current === undefined) throw new Error("not seeded again yet");
        const { generation } = current;
        const desired = { ...current, slots, generation: generation + 1 };
        if ((await registry.putDesired({ name: "ticker", desired, expected: generation })) === "stored")
          return true;
      } catch {
        // The store is away, or was wiped a moment ago.
      }
      await delay(200);
    }
    return false;
  }

  /** Of the slots that are always wanted: when each had emitted again. */
  #recovery(at: number): number | undefined {
    const first = new Map<number, number>();
    for (const { slot, ts } of this.#ledger) {
      if (ts < at + 50 || slot >= BASE_SLOTS) continue;
      first.set(slot, Math.min(first.get(slot) ?? ts, ts));
    }
    return first.size < BASE_SLOTS ? undefined : Math.max(...first.values()) - at;
  }

  #worstGap(): number {
    let worst = 0;
    const last = new Map<number, number>();
    for (const { slot, ts } of this.#ledger) {
      if (slot >= BASE_SLOTS) continue;
      worst = Math.max(worst, ts - (last.get(slot) ?? ts));
      last.set(slot, ts);
    }
    return worst;
  }

  /** In the order in which they were pushed, a run's ticks must stand together: once another run has begun, this one is over. */
  #overlaps(): string[] {
    const found: string[] = [];
    const present = new Map<number, Tick>();
    const over = new Map<string, number>();
    for (const tick of this.#ledger) {
      const before = present.get(tick.slot);
      present.set(tick.slot, tick);
      if (before === undefined || before.run === tick.run) continue;
      over.set(before.run, tick.ts);
      const ended = over.get(tick.run);
      const wiped = this.#wipes.some((at) => tick.ts > at - 1000 && tick.ts < at + 5000);
      if (ended === undefined || wiped) continue;
      found.push(
        `slot ${tick.slot}: ${tick.worker} ${tick.pid} emits ${tick.ts - ended} ms after ${before.worker} ${before.pid} began`,
      );
    }
    return found;
  }

  async #leftOver(): Promise<number[]> {
    const texts = [`${MARK}=${this.#env[MARK]}`, ...[...this.#incarnations].map((id) => `FLEET_MARK=${id}`)];
    // What was killed a moment ago is still being cleared away.
    for (let i = 0; i < 50 && processesWith(texts).length > 0; i++) await delay(100);
    return processesWith(texts);
  }
}

function lastWords(worker: WorkerProcess): string {
  const exit = worker.exit() ?? "still there";
  return exit === "exit code 0" ? exit : `${exit}\n${worker.output().slice(-3000)}`;
}

/** The process that runs the slots; a supervisor that starts has another one for a moment, which loads the project. */
function childOf(worker: WorkerProcess): number | undefined {
  return descendants(worker.pid).find((pid) => processesWith(["child-main"]).includes(pid));
}

async function killChild(worker: WorkerProcess): Promise<boolean> {
  const child = childOf(worker);
  return child !== undefined && kill(child, "SIGKILL");
}

async function freezeFor(pid: number | undefined, ms: number): Promise<boolean> {
  if (pid === undefined || !kill(pid, "SIGSTOP")) return false;
  await delay(ms);
  kill(pid, "SIGCONT");
  return true;
}

function kill(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

/** Growth per minute of a series of measurements, by least squares. */
export function slopePerMinute(points: readonly { minutes: number; value: number }[]): number {
  const mean = (of: (point: { minutes: number; value: number }) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [x, y] = [mean((point) => point.minutes), mean((point) => point.value)];
  const spread = points.reduce((sum, point) => sum + (point.minutes - x) ** 2, 0);
  return points.reduce((sum, point) => sum + (point.minutes - x) * (point.value - y), 0) / spread;
}

/** Per kind of fault: how often, and the recovery times. */
export function summary({ injected, worstGapMs, ticks }: NemesisReport): string {
  const kinds = new Map<string, Injected[]>();
  for (const fault of injected) kinds.set(fault.kind, [...(kinds.get(fault.kind) ?? []), fault]);
  const lines = [...kinds].map(([kind, faults]) => {
    const times = faults.flatMap(({ recoveredMs }) => recoveredMs ?? []).toSorted((a, b) => a - b);
    const bit = faults.filter((fault) => fault.bit).length;
    const median = times[Math.floor(times.length / 2)] ?? Number.NaN;
    return `  ${kind}: ${faults.length} (${bit} bit), all slots again after ${Math.round(median)} ms (median), ${Math.round(times.at(-1) ?? Number.NaN)} ms (worst)`;
  });
  return [
    `${injected.length} faults, ${ticks} emits, longest silence of a slot ${worstGapMs} ms`,
    ...lines,
  ].join("\n");
}
