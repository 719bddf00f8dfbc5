import type { Command } from "commander";
import { checkName } from "../contracts/name.ts";
import type { Store } from "../store/store.ts";
import { addTargetOptions, type TargetFlags } from "./options.ts";
import { type Column, duration, renderTable } from "./table.ts";
import { withStore } from "./target.ts";
import type { Terminal } from "./terminal.ts";

/** One line of `fleet lock ls --json`. Times are Unix milliseconds. */
export interface LockLine {
  name: string;
  key: string;
  /** Null where it is free and somebody waits for it. */
  held_by: string | null;
  since: number | null;
  until: number | null;
  /** Fencing token. */
  token: string | null;
  /** In the order in which they will have it. */
  waiting: { by: string; since: number }[];
}

/** `fleet lock …`: who has which lock, straight from the store. */
export function addLock(program: Command, terminal: Terminal): void {
  const lock = program
    .command("lock")
    .description("look at the locks that automations share")
    .addHelpText("after", "\nExamples:\n  fleet lock ls\n  fleet lock ls token-refresh --json");
  addTargetOptions(lock.command("ls [name]").description("what is held, by whom, and who waits")).action(
    async (name: string | undefined, _options, command: Command) => {
      if (name !== undefined) checkName("lock", name);
      await withStore(command.optsWithGlobals<TargetFlags>(), async (store) => {
        const lines = await listLocks(store, name);
        const now = await store.now();
        terminal.print(
          terminal.json ? `${JSON.stringify(lines)}\n` : renderLocks(lines, now, terminal.colors(1).dim),
        );
      });
    },
  );
}

export async function listLocks(store: Store, name?: string): Promise<LockLine[]> {
  const { locks } = store.state;
  const names = name === undefined ? await locks.list() : [name];
  const all = await Promise.all(
    names.map(async (one) => ({ one, records: await locks.show({ name: one }) })),
  );
  return all.flatMap(({ one, records }) =>
    records.map(({ key, holder, waiting }) => ({
      name: one,
      key,
      held_by: holder?.by ?? null,
      since: holder?.since ?? null,
      until: holder?.until ?? null,
      token: holder?.token ?? null,
      waiting,
    })),
  );
}

export function renderLocks(
  lines: readonly LockLine[],
  now: number,
  paintTitle: (text: string) => string,
): string {
  if (lines.length === 0) return "No lock is held.\n";
  const columns: Column<LockLine>[] = [
    { title: "LOCK", text: ({ name }) => name },
    { title: "KEY", text: ({ key }) => (key === "" ? "-" : key) },
    { title: "HELD BY", text: ({ held_by: by }) => by ?? "-" },
    { title: "FOR", align: "right", text: ({ since }) => (since === null ? "-" : duration(now - since)) },
    { title: "ENDS IN", align: "right", text: ({ until }) => (until === null ? "-" : duration(until - now)) },
    { title: "WAITING", align: "right", text: ({ waiting }) => String(waiting.length) },
    { title: "NEXT", text: ({ waiting }) => waiting[0]?.by ?? "-" },
  ];
  return `${renderTable(lines, columns, paintTitle)}\n`;
}
