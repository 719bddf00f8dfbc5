// P5: emits on the embedded store: gathered in one process, and one by one from four.
import { join } from "node:path";
import { openFleet } from "../../src/index.ts";
import { startHelper } from "../helper-process.ts";
import type { PushLoad } from "../helper-calls.ts";
import { PINGS, samplePing } from "../payload.ts";
import { line, type Line } from "../result.ts";
import { inFlight, interleave } from "../rounds.ts";
import { median, percentile } from "../stats.ts";
import type { Bench } from "../suite.ts";

const BURST = 500;
const CALLERS = 256;
const PROCESSES = 4;

export async function sqlite(bench: Bench): Promise<Line[]> {
  return [...(await gathered(bench)), ...(await fourProcesses(bench))];
}

async function gathered({ folder, rounds, quick }: Bench): Promise<Line[]> {
  const ms = quick ? 200 : 1000;
  const fleet = await openFleet({ store: `sqlite:${join(folder, "gathered.db")}` });
  const stream = fleet.stream(PINGS);
  let index = 0;
  const burst = () => Promise.all(Array.from({ length: BURST }, () => stream.push(samplePing(++index))));
  const [bursts = [], callers = []] = await interleave(rounds, [
    async () => BURST * (await inFlight(1, ms, burst)),
    () => inFlight(CALLERS, ms, () => stream.push(samplePing(++index))),
  ]);
  await fleet.close();
  const unit = "rows/s";
  return [
    line({
      row: "P5",
      what: `${BURST} emits per tick, SQLite file, validated, pruned, acknowledged`,
      ours: { label: "fleet emit", unit, rounds: bursts },
      target: { is: "at least", value: 100_000 },
    }),
    line({
      row: "P5",
      what: `${CALLERS} emits in flight, SQLite file`,
      ours: { label: "fleet emit", unit, rounds: callers },
    }),
  ];
}

/** How much four processes push together when each waits for its push, then how long a push takes at half of that. */
async function fourProcesses({ folder, rounds, quick }: Bench): Promise<Line[]> {
  const ms = quick ? 300 : 2000;
  const store = `sqlite:${join(folder, "four.db")}`;
  const helpers = Array.from({ length: PROCESSES }, startHelper);
  const all = (perSecond?: number) =>
    Promise.all(helpers.map((helper) => helper.call("pushSqlite", { store, ms, perSecond })));
  await all();
  const full: number[] = [];
  const half: number[] = [];
  const tails: number[] = [];
  let errors = 0;
  for (let round = 0; round < rounds; round++) {
    const saturated = await all();
    full.push(sum(saturated));
    const loads = await all(median(full) / 2 / PROCESSES);
    half.push(sum(loads));
    tails.push(
      percentile(
        loads.flatMap((load) => load.tookMs),
        0.99,
      ),
    );
    for (const load of [...saturated, ...loads]) errors += load.errors;
  }
  for (const helper of helpers) helper.stop();
  const row = "P5";
  return [
    line({
      row,
      what: `${PROCESSES} processes on one SQLite file, each push awaited: together`,
      ours: { label: "fleet emit", unit: "pushes/s", rounds: full },
    }),
    line({
      row,
      what: `${PROCESSES} processes at half of that load: p99 of one push`,
      ours: { label: `fleet emit, ${Math.round(median(half))} pushes/s offered`, unit: "ms", rounds: tails },
      target: { is: "at most", value: 10 },
    }),
    line({
      row,
      what: `${PROCESSES} processes: failed pushes`,
      ours: { label: "fleet emit", unit: "errors", rounds: [errors] },
      target: { is: "at most", value: 0 },
    }),
  ];
}

function sum(loads: readonly PushLoad[]): number {
  return loads.reduce((total, { perSecond }) => total + perSecond, 0);
}
