// Entry of a child process: runs slots of one automation. The supervisor speaks to it over IPC.
import { pathToFileURL } from "node:url";
import { tellSecrets } from "../automation/config-secrets.ts";
import { currentSlot } from "../automation/current-slot.ts";
import { SlotHost } from "../automation/slot-host.ts";
import { isStoreLost } from "../automation/store-lost.ts";
import { traceOf } from "../automation/trace.ts";
import { LOG_LEVELS } from "../internal/log.ts";
import type { FromHost, HostInit, SecretMessage, ToHost } from "../protocol/host.ts";
import { openStore } from "../store/open.ts";
import { findAutomation } from "./find-automation.ts";
import { flightMarks, markedLease, markExit, markedKept } from "./flight-mark.ts";

/** Exit codes of a child; the supervisor reads the message, these are for people who look at processes. */
const UNFIT = 78;
const FATAL = 70;
const ORPHANED = 71;

/** Nothing is known of the level before "init". */
let lowest = 0;
const say = (message: FromHost) => {
  if (message.type === "log" && LOG_LEVELS.indexOf(message.level) < lowest) return;
  if (process.connected) process.send?.(message, undefined, {}, () => undefined);
};
const sayAndExit = (message: FromHost, code: number) => {
  // Not before the message is out; but not much later either, whatever happens.
  setTimeout(() => process.exit(code), 1000).unref();
  if (process.connected) process.send?.(message, undefined, {}, () => process.exit(code));
  else process.exit(code);
};

tellSecrets((value, reference) => {
  const message: SecretMessage = { type: "secret", value, reference };
  if (process.connected) process.send?.(message, undefined, {}, () => undefined);
});

// The supervisor decides when a child ends; without it, there is nothing left to run for.
process.on("disconnect", () => process.exit(ORPHANED));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
for (const event of ["uncaughtException", "unhandledRejection"] as const) {
  process.on(event, (error: unknown) =>
    sayAndExit(
      { type: "fatal", error: traceOf(error), slotId: currentSlot(), storeLost: isStoreLost(error) },
      FATAL,
    ),
  );
}
// `process.exit` in user code says nothing; but here it is still known whose code it was.
process.on("exit", () => {
  const slotId = currentSlot();
  if (slotId !== null) markExit(slotId);
});

let host: SlotHost | undefined;
const early: ToHost[] = [];
process.on("message", (message: HostInit | ToHost) => {
  if (message.type === "init") void begin(message);
  else if (host === undefined) early.push(message);
  else host.hear(message);
});

async function begin(init: HostInit): Promise<void> {
  lowest = LOG_LEVELS.indexOf(init.logLevel);
  try {
    const store = await openStore(init.storeUrl, {
      namespace: init.namespace,
      token: init.storeToken,
      // What the supervisor answers when its own deadline (5 s) has passed tells more than no answer: whether the call was sent.
      ...(init.storeToken === undefined ? {} : { deadlineSeconds: 6 }),
      log: (level, message, fields) =>
        say({ type: "log", level, message, fields: { automation: init.automation, ...fields } }),
    });
    // For what is loaded from here on, which is the user's: reading the maps of all before it would take a tenth of a second.
    process.setSourceMapsEnabled(true);
    const module: unknown = await import(pathToFileURL(init.module).href);
    const automation = findAutomation(module, init.automation, init.module);
    const onClosed = () => void store.close().finally(() => process.exit(0));
    host = new SlotHost({
      automation,
      store,
      worker: init.worker,
      holder: init.holder,
      leaseMs: init.leaseMs,
      say,
      onClosed,
      marks: flightMarks,
      leasedUntil: markedLease,
      keptUntil: markedKept,
    });
    say({ type: "ready" });
    for (const message of early.splice(0)) host.hear(message);
  } catch (error) {
    sayAndExit({ type: "unfit", error: traceOf(error) }, UNFIT);
  }
}
