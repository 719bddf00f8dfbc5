import { pathToFileURL } from "node:url";
import type { Automation } from "../automation/definition.ts";
import { SlotHost } from "../automation/slot-host.ts";
import { traceOf } from "../automation/slot-run.ts";
import type { ToHost } from "../protocol/host.ts";
import type { ProgramAutomation } from "../protocol/program.ts";
import type { Store } from "../store/store.ts";
import { findAutomation } from "./find-automation.ts";
import type { Runtime } from "./runtime.ts";

/**
 * Runs slots in this very process: for tests, for embedding, and for `sqlite::memory:`, which no other process can share.
 * User code is not isolated here: what breaks the process breaks all, and `kill` can only let go of it.
 */
export function inlineRuntime(
  store: Store,
  worker: string,
  given: ReadonlyMap<string, Automation> = new Map(),
): Runtime {
  return {
    start: (program, hear, exited) => {
      let host: SlotHost | undefined;
      let over = false;
      let lastSlot: number | null = null;
      const early: ToHost[] = [];
      const end = (code: number) => {
        if (over) return;
        over = true;
        queueMicrotask(() => exited({ code, signal: null, lastSlot, stderr: "" }));
      };
      const begin = async () => {
        // As with a process, nothing is heard of a host before `start` has returned it.
        await Promise.resolve();
        const automation = given.get(program.manifest.name) ?? (await load(program));
        if (over) return;
        host = new SlotHost({
          automation,
          store,
          worker,
          say: (message) => !over && hear(message),
          onClosed: () => end(0),
          mark: (slotId) => {
            lastSlot = slotId;
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
