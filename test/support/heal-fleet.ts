// Workers with short times, automations that do harm on command, and what tells when a slot runs again.
import { closeSync, fstatSync, openSync, readSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, vi } from "vitest";
import type { HealRecord } from "../../src/protocol/health.ts";
import type { Store } from "../../src/store/store.ts";
import { makeProject, startFleet, type RunningFleet } from "./cli.ts";
import { openPlace, runningSlots, type Place } from "./places.ts";

/** Lease 3 s, beat 0.3 s; a run of half a second forgives what was before, so one fault does not slow down the next one's heal. */
export const QUICK = {
  beatMs: 300,
  leaseMs: 3000,
  stopGraceMs: 1000,
  backoffBaseMs: 200,
  backoffCapMs: 2000,
  healthyMs: 500,
  budgets: [{ failures: 100, windowMs: 60_000 }],
  probeMs: 2000,
  sweepMs: 500,
};
/** lease + sweep + poll (3 + 0.5 + 0.5 s), and 1 s of slack. */
export const BOUND_MS = 5000;

/** What every automation of these tests starts with: a ledger beside the project, and orders that reach one slot of one worker. */
const TOOLS = `
  import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
  const dir = process.cwd();
  /** One line, written before the call returns: it stands there also when the process ends in the next step. */
  export function note(ctx, what, more = {}) {
    const line = { at: Date.now(), slot: ctx.automation + "/" + ctx.slotId, worker: ctx.worker, pid: process.pid, what, ...more };
    appendFileSync(dir + "/ledger.jsonl", JSON.stringify(line) + "\\n");
  }
  /** The order given to this slot, once. */
  export function order(ctx) {
    const path = dir + "/order-" + ctx.automation + "-" + ctx.slotId;
    if (!existsSync(path)) return undefined;
    const text = readFileSync(path, "utf8");
    rmSync(path);
    note(ctx, "order", { order: text });
    return text;
  }
`;

export interface Line {
  at: number;
  slot: string;
  worker: string;
  pid: number;
  what: string;
  order?: string;
  [more: string]: unknown;
}

export interface HealFleet {
  readonly dir: string;
  readonly store: Store;
  readonly url: string;
  readonly flags: string[];
  /** Starts `fleet worker`; `env` is added to its environment. */
  worker(id: string, options?: WorkerOptions): RunningFleet;
  ledger(): readonly Line[];
  /** Lines of one slot ("victim/0"), or of all slots of an automation. */
  lines(of: string, what?: string): Line[];
  /** Gives an order to a slot; it is taken up at its next turn. */
  command(slot: string, text: string): void;
  /** Waits for a line that was not there at `since` (a ledger length). */
  untilLine(wanted: (line: Line) => boolean, since?: number, ms?: number): Promise<Line>;
  /** Newest heal of a slot, from the store. */
  lastHeal(slot: string): Promise<HealRecord | undefined>;
  state(slot: string): Promise<string | undefined>;
}

export interface WorkerOptions {
  timings?: Record<string, unknown>;
  env?: Record<string, string>;
  args?: readonly string[];
}

/** A project with these files beside `tools.ts`, on a store of `place`; it goes with the test. */
export async function healFleet(place: Place, files: Record<string, string>): Promise<HealFleet> {
  const dir = makeProject({ "tools.ts": TOOLS, ...files });
  const at = place.at(dir);
  const store = await openPlace(at);
  onTestFinished(() => store.close());
  const path = join(dir, "ledger.jsonl");
  writeFileSync(path, "");
  const ledger = linesOf(path);
  const fleet: HealFleet = {
    dir,
    store,
    url: at.url,
    flags: at.flags,
    worker: (id, { timings, env, args = [] } = {}) =>
      startFleet(["worker", "--id", id, ...at.flags, ...args], {
        cwd: dir,
        env: { FLEET_TIMINGS: JSON.stringify({ ...QUICK, ...timings }), ...env },
      }),
    ledger,
    lines: (of, what) =>
      ledger().filter(
        (line) =>
          (line.slot === of || line.slot.startsWith(`${of}/`)) && (what === undefined || line.what === what),
      ),
    command: (slot, text) => {
      // Under another name first: what is read is whole.
      const draft = join(dir, "order.draft");
      writeFileSync(draft, text);
      renameSync(draft, join(dir, `order-${slot.replace("/", "-")}`));
    },
    untilLine: (wanted, since = 0, ms = 60_000) =>
      vi.waitFor(
        () => {
          const line = ledger().slice(since).find(wanted);
          if (line === undefined) throw new Error(`no such line yet: ${String(wanted)}`);
          return line;
        },
        { timeout: ms, interval: 20 },
      ),
    lastHeal: async (slot) => (await store.registry.slotHealth())[slot]?.history[0],
    state: async (slot) => {
      const { workers, now } = await store.registry.view();
      return workers
        .filter(({ expiresAt }) => expiresAt > now)
        .flatMap(({ slots }) => slots)
        .find(({ automation, slotId }) => `${automation}/${slotId}` === slot)?.state;
    },
  };
  return fleet;
}

/** Reads the lines of a file to which others append: only what is new at each call, as tests look many times a second. */
function linesOf(path: string): () => readonly Line[] {
  const lines: Line[] = [];
  let done = 0;
  return () => {
    const file = openSync(path, "r");
    try {
      const fresh = Buffer.alloc(fstatSync(file).size - done);
      const read = readSync(file, fresh, 0, fresh.length, done);
      const whole = fresh.lastIndexOf("\n", read - 1) + 1;
      const text = fresh.toString("utf8", 0, whole);
      lines.push(...text.split("\n").flatMap(parsed));
      done += whole;
    } finally {
      closeSync(file);
    }
    return lines;
  };
}

const parsed = (line: string): Line[] => (line === "" ? [] : [JSON.parse(line) as Line]);

/** Prints what was measured: these numbers stand in the documentation. */
export function measured(what: string, value: string): void {
  process.stdout.write(`measured: ${what}: ${value}\n`);
}

export const ms = (value: number) => `${(value / 1000).toFixed(2)} s`;

/** Beginning of a run of this slot, on this worker where one is named. */
export const starts =
  (slot: string, worker?: string) =>
  (line: Line): boolean =>
    line.slot === slot && line.what === "start" && (worker === undefined || line.worker === worker);

/** The time of the last of these. */
export const lastOf = (lines: Iterable<Line>) => Math.max(...[...lines].map(({ at }) => at));

/** Slots that run on a worker. */
export async function slotsOf(fleet: HealFleet, worker: string): Promise<string[]> {
  return [...(await runningSlots(fleet.store))]
    .filter(([, workers]) => workers.includes(worker))
    .map(([slot]) => slot);
}

/** Waits until each worker runs so many slots. */
export async function untilSpread(fleet: HealFleet, wanted: Record<string, number>): Promise<void> {
  await vi.waitFor(
    async () => {
      const found = await Promise.all(Object.keys(wanted).map((id) => slotsOf(fleet, id)));
      expect(found.map((slots) => slots.length)).toEqual(Object.values(wanted));
    },
    { timeout: 60_000, interval: 100 },
  );
}
