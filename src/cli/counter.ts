import type { Command } from "commander";
import { checkName } from "../contracts/name.ts";
import { FleetError } from "../errors.ts";
import { SILENT } from "../internal/log.ts";
import type { Counter } from "../primitives/counter.ts";
import { SharedState } from "../primitives/state.ts";
import type { Store } from "../store/store.ts";
import { addTargetOptions, type TargetFlags, wholeNumber } from "./options.ts";
import { type Column, renderTable } from "./table.ts";
import { withStore } from "./target.ts";
import type { Terminal } from "./terminal.ts";

const MAX_N = 100_000;

/** One line of `fleet counter ls --json`. */
export interface CounterLine {
  name: string;
  key: string;
  value: number;
}

/** `fleet counter …`: counters, straight from the store. */
export function addCounter(program: Command, terminal: Terminal): void {
  const counter = program
    .command("counter")
    .description("look at counters that automations share, or change them")
    .addHelpText(
      "after",
      "\nExamples:\n  fleet counter ls\n  fleet counter get pages --key example.com\n  fleet counter add pages 5\n  fleet counter add pages -5\n  fleet counter set pages 0",
    );
  addLs(counter, terminal);
  const print = (line: CounterLine) =>
    terminal.print(terminal.json ? `${JSON.stringify(line)}\n` : `${line.value}\n`);

  addOne(counter.command("get <name>").description("the value of one counter"), async (one) =>
    print({ ...one.ref, value: await one.counter.get() }),
  );
  addOne(
    counter.command("add <name> [by]").description("add to it, and print the new value"),
    async (one) => {
      const by = one.number === undefined ? 1 : whole(one.number);
      print({ ...one.ref, value: await one.counter.add(by) });
    },
  );
  addOne(counter.command("set <name> <value>").description("set it, and print the value"), async (one) => {
    const value = whole(one.number ?? "");
    await one.counter.set(value);
    print({ ...one.ref, value });
  });
}

interface One {
  ref: { name: string; key: string };
  counter: Counter;
  number: string | undefined;
}

/** A command about one counter: `<name> [number] --key <key>`. */
function addOne(command: Command, act: (one: One) => Promise<void>): void {
  addTargetOptions(command)
    .option("--key <key>", "which of its keys; default the one without a key", "")
    .action(async (name: string, ...rest: unknown[]) => {
      const { key, ...flags } = command.optsWithGlobals<TargetFlags & { key: string }>();
      const number = typeof rest[0] === "string" ? rest[0] : undefined;
      checkName("counter", name);
      await withStore(flags, async (store) => {
        const shared = new SharedState(store, { log: SILENT });
        await act({ ref: { name, key }, counter: shared.counter(name, { key }), number });
      });
    });
}

function addLs(counter: Command, terminal: Terminal): void {
  addTargetOptions(counter.command("ls [name]").description("all counters and their keys, with their values"))
    .option("-n <count>", "at most how many keys of each", wholeNumber(1, MAX_N), 1000)
    .action(async (name: string | undefined, options: { n: number }, command: Command) => {
      if (name !== undefined) checkName("counter", name);
      await withStore(command.optsWithGlobals<TargetFlags>(), async (store) => {
        const lines = await listCounters(store, options.n, name);
        terminal.print(
          terminal.json ? `${JSON.stringify(lines)}\n` : renderCounters(lines, terminal.colors(1).dim),
        );
      });
    });
}

async function listCounters(store: Store, n: number, name?: string): Promise<CounterLine[]> {
  const { counters } = store.state;
  const names = name === undefined ? await counters.list() : [name];
  const pages = await Promise.all(names.map((one) => counters.page({ name: one, n })));
  return pages.flatMap((page, i) => page.map((line) => ({ name: names[i] as string, ...line })));
}

const COLUMNS: readonly Column<CounterLine>[] = [
  { title: "COUNTER", text: ({ name }) => name },
  { title: "KEY", text: ({ key }) => (key === "" ? "-" : key) },
  { title: "VALUE", align: "right", text: ({ value }) => String(value) },
];

function renderCounters(lines: readonly CounterLine[], paintTitle: (text: string) => string): string {
  return lines.length === 0 ? "There are no counters yet.\n" : `${renderTable(lines, COLUMNS, paintTitle)}\n`;
}

function whole(text: string): number {
  const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value)) return value;
  throw new FleetError("FLEET_USAGE", `"${text}" is no whole number within ±${Number.MAX_SAFE_INTEGER}`);
}
