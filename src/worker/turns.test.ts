import { expect, test, vi } from "vitest";
import { SILENT } from "../internal/log.ts";
import { monotonicMs } from "../internal/timers.ts";
import type { WorkerRecord } from "../protocol/status.ts";
import { openStore } from "../store/open.ts";
import type { Registry } from "../store/store.ts";
import { Books } from "./books.ts";
import { Membership } from "./membership.ts";
import { workerTimings } from "./timings.ts";
import { movesAtOnce, Turns } from "./turns.ts";

const worker = (id: string) => ({
  id,
  incarnation: `${id}-1`,
  host: "h",
  pid: 1,
  version: "0",
  startedAt: 0,
  capacity: 1,
  labels: {},
  automations: [],
  draining: false,
});

test("half of the live workers that run slots may move some at once, and always one", () => {
  const record = (id: string, expiresAt = 10): WorkerRecord => ({
    ...worker(id),
    generation: 1,
    lastSeenAt: 0,
    expiresAt,
    slots: [],
  });
  const view = (assigned: string[], workers: WorkerRecord[]) => ({
    now: 5,
    workers,
    assignments: { x: Object.fromEntries(assigned.map((id, slot) => [slot, id])) },
  });
  const five = ["a", "b", "c", "d", "e"];
  const most = [0, 1, 2, 3, 4, 5].map((n) =>
    movesAtOnce(
      view(
        five.slice(0, n),
        five.map((id) => record(id)),
      ),
      "x",
    ),
  );
  expect(most).toEqual([1, 1, 1, 1, 2, 2]);
  // Several slots of one worker are one, and one that is gone counts for nothing.
  const workers = five.map((id) => record(id, id > "c" ? 5 : 10));
  expect(movesAtOnce(view([...five, "a", "a", "b"], workers), "x")).toBe(1);
  expect(movesAtOnce(view(five, workers), "y")).toBe(1);
  expect(movesAtOnce(undefined, "x")).toBe(1);
});

async function two() {
  const store = await openStore("sqlite::memory:");
  const timings = workerTimings({ beatMs: 50, leaseMs: 6000 });
  let away = false;
  let held: Promise<void> | undefined;
  const registry: Pick<Registry, "takeTurn" | "endTurn"> = {
    async takeTurn(args) {
      await held;
      if (away) throw new Error("away");
      return store.registry.takeTurn(args);
    },
    endTurn: (args) => (away ? Promise.reject(new Error("away")) : store.registry.endTurn(args)),
  };
  const turnsOf = (id: string) => {
    const program = { automations: [], deploy: {} };
    const parts = { store, worker: worker(id), program, ttlMs: 1000, log: SILENT };
    const books = new Books({
      program,
      member: new Membership(parts),
      timings,
      partition: { policy: "finish", afterSeconds: null },
    });
    const changed = vi.fn<() => void>();
    return { changed, turns: new Turns({ registry, books, log: SILENT, changed }) };
  };
  const hold = () => {
    let go: () => void = () => undefined;
    held = new Promise((resolve) => (go = resolve));
    return () => go();
  };
  const cut = (on: boolean) => (away = on);
  return { a: turnsOf("a"), b: turnsOf("b"), cut, hold, close: () => store.close() };
}

test("one asks while the other moves, and is told as soon as it has its turn", async () => {
  const { a, b, close } = await two();
  const now = monotonicMs();
  a.turns.ask("x", now);
  await vi.waitFor(() => expect(a.changed).toHaveBeenCalledTimes(1));
  expect([...a.turns.mayMove(monotonicMs())]).toEqual(["x"]);
  const asked = async () => {
    b.turns.ask("x", monotonicMs());
    await Promise.resolve();
  };
  for (let i = 0; i < 20; i++) await asked();
  expect([...b.turns.mayMove(monotonicMs())]).toEqual([]);
  a.turns.end("x");
  expect([...a.turns.mayMove(monotonicMs())]).toEqual([]);
  await vi.waitFor(async () => {
    await asked();
    expect(b.changed).toHaveBeenCalledTimes(1);
  });
  expect([...b.turns.mayMove(monotonicMs())]).toEqual(["x"]);
  await close();
});

test("while the store is away no move is begun, and what was held comes back with it", async () => {
  const { a, cut, close } = await two();
  a.turns.ask("x", monotonicMs());
  await vi.waitFor(() => expect(a.changed).toHaveBeenCalledTimes(1));
  cut(true);
  const soon = monotonicMs() + 2500;
  await a.turns.renew();
  expect([...a.turns.mayMove(soon)]).toEqual([]);
  a.turns.ask("x", soon);
  await new Promise((resolve) => setImmediate(resolve));
  expect([...a.turns.mayMove(soon)]).toEqual([]);
  cut(false);
  await vi.waitFor(async () => {
    await a.turns.renew();
    expect(a.changed).toHaveBeenCalledTimes(2);
  });
  await close();
});

test("a turn that ended while it was being renewed does not come back", async () => {
  const { a, b, hold, close } = await two();
  a.turns.ask("x", monotonicMs());
  await vi.waitFor(() => expect(a.changed).toHaveBeenCalledTimes(1));
  // Its answer comes after the end, and the store has had it after the end, too.
  const go = hold();
  await new Promise((resolve) => setTimeout(resolve, 50));
  const renewing = a.turns.renew();
  a.turns.end("x");
  go();
  await renewing;
  expect([...a.turns.mayMove(monotonicMs())]).toEqual([]);
  expect(a.changed).toHaveBeenCalledTimes(1);
  await vi.waitFor(() => {
    b.turns.ask("x", monotonicMs());
    expect(b.changed).toHaveBeenCalledTimes(1);
  });
  await close();
});
