import type { Watch } from "../watch.ts";
import type { FleetRow } from "./fleet-row.ts";
import { call, type Notifier } from "./notify.ts";
import type { Writer } from "./writer.ts";

/** Hints for changes of the registry's revision, made here or by another process. */
export function createRegistryWatch(parts: { fleet: FleetRow; writer: Writer; notifier: Notifier }): {
  watch(onHint: () => void): Watch;
} {
  const { fleet, writer, notifier } = parts;
  const hints = new Set<() => void>();
  let seen = 0;

  /** A wipe sets the revision back, so any difference counts. */
  function look(): boolean {
    if (hints.size === 0) return false;
    const { revision } = fleet.read();
    if (revision === seen) return false;
    seen = revision;
    for (const hint of hints) call(notifier, hint);
    return true;
  }

  notifier.onForeignCommit(look);
  writer.join({ flush() {}, committed: () => call(notifier, look), rolledBack() {} });

  return {
    watch(onHint) {
      const hint = () => onHint();
      let open = true;
      const release = notifier.hold();
      const ready = writer.read(() => {
        if (!open) return;
        if (hints.size === 0) seen = fleet.read().revision;
        hints.add(hint);
      });
      ready.catch(release);
      return {
        ready,
        close() {
          open = false;
          release();
          hints.delete(hint);
          return Promise.resolve();
        },
      };
    },
  };
}
