import type { Command } from "commander";
import { checkName } from "../contracts/name.ts";
import type { Store } from "../store/store.ts";
import { addTargetOptions, type TargetFlags, wholeNumber } from "./options.ts";
import { limitsOf } from "./explain-permits.ts";
import { type Column, duration, renderTable } from "./table.ts";
import { withStore } from "./target.ts";
import type { Terminal } from "./terminal.ts";

const MAX_N = 100_000;

/** One line of `fleet limit ls --json`. */
export interface LimitLine {
  name: string;
  key: string;
  windows: { limit: number; per_seconds: number; burst: number; available: number }[];
  /** Unix milliseconds. */
  free_at: number;
  /** Whose tasks need permits of it. */
  queues: string[];
}

/** `fleet limit …`: how far rate limits are used, straight from the store. */
export function addLimit(program: Command, terminal: Terminal): void {
  const limit = program
    .command("limit")
    .description("look at the rate limits that automations share")
    .addHelpText("after", "\nExamples:\n  fleet limit ls\n  fleet limit ls example-api --json");
  addTargetOptions(
    limit.command("ls [name]").description("what has been taken of them; unused ones are not listed"),
  )
    .option("-n <count>", "at most how many keys of each", wholeNumber(1, MAX_N), 1000)
    .action(async (name: string | undefined, options: { n: number }, command: Command) => {
      if (name !== undefined) checkName("rate limit", name);
      await withStore(command.optsWithGlobals<TargetFlags>(), async (store) => {
        const lines = await listLimits(store, options.n, name);
        const now = await store.now();
        terminal.print(
          terminal.json ? `${JSON.stringify(lines)}\n` : renderLimits(lines, now, terminal.colors(1).dim),
        );
      });
    });
}

async function listLimits(store: Store, n: number, name?: string): Promise<LimitLine[]> {
  const { limits } = store.state;
  const names = name === undefined ? await limits.list() : [name];
  const all = await Promise.all(names.map((one) => limits.show({ name: one, n })));
  const used = [...limitsOf(await store.registry.manifests())];
  return all.flatMap((records, i) =>
    records.map(({ key, windows, freeAt }) => ({
      name: names[i] as string,
      key,
      windows: windows.map(({ limit, perMs, burst, available }) => ({
        limit,
        per_seconds: perMs / 1000,
        burst,
        available,
      })),
      free_at: freeAt,
      queues: used.filter(([, by]) => by.name === names[i] && by.key === key).map(([queue]) => queue),
    })),
  );
}

export function renderLimits(
  lines: readonly LimitLine[],
  now: number,
  paintTitle: (text: string) => string,
): string {
  if (lines.length === 0) return "No rate limit is in use.\n";
  const columns: Column<LimitLine>[] = [
    { title: "LIMIT", text: ({ name }) => name },
    { title: "KEY", text: ({ key }) => (key === "" ? "-" : key) },
    {
      title: "WINDOWS",
      text: ({ windows }) => windows.map((one) => `${one.limit} per ${one.per_seconds} s`).join(", "),
    },
    {
      title: "AT ONCE",
      align: "right",
      text: ({ windows }) => windows.map(({ available, burst }) => `${available}/${burst}`).join(", "),
    },
    { title: "ALL FREE IN", align: "right", text: (line) => duration(line.free_at - now) },
    { title: "QUEUES", text: ({ queues }) => (queues.length === 0 ? "-" : queues.join(", ")) },
  ];
  return `${renderTable(lines, columns, paintTitle)}\n`;
}
