// `fleet drain --wait`: until the process that was asked to drain has left.
import { drainLine } from "../control/drain-report.ts";
import { monotonicMs, sleep } from "../internal/timers.ts";
import { workerState, type WorkerRecord } from "../protocol/status.ts";
import type { Registry } from "../store/store.ts";
import { drainWords } from "./drain-words.ts";
import { CommandFailed } from "./exit.ts";
import { PatientView } from "./patient-view.ts";
import { duration } from "./table.ts";

const LOOK_MS = 200;
/** While it lasts, what it waits for is said so often. */
const SAY_MS = 10_000;

/**
 * Waits until this incarnation is gone, also one whose id somebody else bears by then, and over any absence of the store or its master; `say`
 * is told every ten seconds what it waits for. After `waitSeconds` it throws `CommandFailed` with that, or, where the store is away,
 * `FLEET_STORE_UNAVAILABLE`.
 */
export async function untilGone(
  registry: Pick<Registry, "view">,
  { id, incarnation }: Pick<WorkerRecord, "id" | "incarnation">,
  waitSeconds: number,
  say: (words: string) => void,
): Promise<{ forced: boolean }> {
  const started = monotonicMs();
  const until = started + waitSeconds * 1000;
  const fleet = new PatientView(registry);
  let forced = false;
  let sayAt = started + SAY_MS;
  for (;;) {
    const view = await fleet.look();
    const now = monotonicMs();
    const says = now >= sayAt;
    if (says) sayAt = now + SAY_MS;
    const left = until - now;
    if (view === undefined) {
      if (left <= 0) throw fleet.away(`the drain of ${id} goes on, but after ${waitSeconds} s`);
      if (says)
        say(`${id}: the store has not answered for ${duration(fleet.awaySeconds * 1000)}; waiting for it`);
      await sleep(Math.min(LOOK_MS, left));
      continue;
    }
    const worker = view.workers.find((one) => one.id === id && one.incarnation === incarnation);
    forced ||= worker?.drain?.forced ?? false;
    if (worker === undefined || workerState(worker, view.now) === "offline") return { forced };
    const line = drainLine(worker, view.now);
    const why = line === null ? `${id} does not drain` : drainWords(id, line);
    if (says) say(why);
    if (left <= 0) {
      throw new CommandFailed(
        "FLEET_NOT_FOLLOWED",
        `the drain goes on, but after ${waitSeconds} s the worker is not gone: ${why}`,
      );
    }
    await sleep(Math.min(LOOK_MS, left));
  }
}
