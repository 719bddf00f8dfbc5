import { pathToFileURL } from "node:url";
import type { Automation } from "../automation/definition.ts";
import { SlotHost } from "../automation/slot-host.ts";
import { traceOf } from "../automation/trace.ts";
import type { ToHost } from "../protocol/host.ts";
import type { ProgramAutomation } from "../protocol/program.ts";
import type { Store } from "../store/store.ts";
import { findAutomation } from "./find-automation.ts";
import type { Flight } from "./flight-mark.ts";
import { holderOf, type Runtime } from "./runtime.ts";
import type { TaskMark } from "./task-marks.ts";

/**
 * Runs slots in this very process: for tests, for embedding, and for `sqlite::memory:`, which no other process can share.
 * User code is not isolated here: what breaks the process breaks all, and `kill` can only let go of it.
 */
export function inlineRuntime(
  store: Store,
  link: { worker: string; incarnation: string; leaseMs: number },
  given: ReadonlyMap<string, Automation> = new Map(),
): Runtime {
  let started = 0;
  return {
    start: (program, hear, exited) => {
      const holder = holderOf(link.incarnation, (started += 1));
      let host: SlotHost | undefined;
      let over = false;
      let lastSlot: number | null = null;
      const tasks = new Map<number, TaskMark>();
      const flight = (): Flight => ({ lastSlot, endedBy: null, tasks: [...tasks.values()] });
      const early: ToHost[] = [];
      const end = (code: number) => {
        if (over) return;
        over = true;
        queueMicrotask(() => exited({ code, signal: null, flight: flight(), stderr: "" }));
      };
      const begin = async () => {
        // As with a process, nothing is heard of a host before `start` has returned it.
        await Promise.resolve();
        const automation = given.get(program.manifest.name) ?? (await load(program));
        if (over) return;
        host = new SlotHost({
          automation,
          store,
          worker: link.worker,
          holder,
          leaseMs: link.leaseMs,
          say: (message) => !over && hear(message),
          onClosed: () => end(0),
          marks: {
            slot: (slotId) => {
              lastSlot = slotId;
            },
            task: (slotId, task, all) => {
              tasks.delete(slotId);
              if (task === null) return;
              lastSlot = slotId;
              tasks.set(slotId, { slotId, seq: 0, ...task, tasks: all });
            },
          },
        });
        hear({ type: "ready" });
        for (const message of early.splice(0)) host.hear(message);
      };
      begin().catch((error: unknown) => {
        hear({ type: "unfit", error: traceOf(error) });
        end(1);
      });
      return {
        pid: null,
        holder,
        flight,
        tell: (message) => (host === undefined ? void early.push(message) : host.hear(message)),
        kill: () => {
          // Code cannot be ended from outside here, but nothing of it reaches the store any more.
          host?.revoke();
          end(1);
        },
      };
    },
    close: () => Promise.resolve(),
  };
}

async function load(program: ProgramAutomation): Promise<Automation> {
  return findAutomation(
    await import(pathToFileURL(program.module).href),
    program.manifest.name,
    program.source,
  );
}
