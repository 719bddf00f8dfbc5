import type { Command } from "commander";
import { checkName } from "../contracts/name.ts";
import { escapeControls, redactText } from "../internal/redact.ts";
import type { Store } from "../store/store.ts";
import type { FleetError } from "../errors.ts";
import { entryJsonLine, entryLine } from "./entry-line.ts";
import { addTargetOptions, seconds, type TargetFlags, wholeNumber } from "./options.ts";
import { popWaiting } from "./stream-pop.ts";
import { followStream } from "../control/follow-stream.ts";
import { notFound } from "../control/not-found.ts";
import { listStreams, renderStreams } from "./stream-list.ts";
import { withStore } from "./target.ts";
import type { Terminal } from "./terminal.ts";

const MAX_N = 100_000;
const MAX_WAIT_SECONDS = 86_400;

/** `fleet stream …`: what lies in the streams, straight from the store. */
export function addStream(program: Command, terminal: Terminal): void {
  const stream = program
    .command("stream")
    .description("look into streams, or take from them")
    .addHelpText(
      "after",
      "\nExamples:\n  fleet stream ls\n  fleet stream peek url-pinger -n 3\n  fleet stream pop url-pinger -n 100 --wait 10\n  fleet stream tail url-pinger | jq .payload",
    );
  addLs(stream, terminal);
  addPeek(stream, terminal);
  addPop(stream, terminal);
  addTail(stream, terminal);
  addLength(stream, terminal);
}

function addLs(stream: Command, terminal: Terminal): void {
  addTargetOptions(stream.command("ls").description("all streams, with their counters")).action(
    (_options, command: Command) =>
      withStore(command.optsWithGlobals<TargetFlags>(), async (store) => {
        const lines = await listStreams(store);
        terminal.print(
          terminal.json ? `${JSON.stringify(lines)}\n` : renderStreams(lines, terminal.colors(1).dim),
        );
      }),
  );
}

function addPeek(stream: Command, terminal: Terminal): void {
  addTargetOptions(stream.command("peek <name>").description("show the oldest entries, without taking them"))
    .option("-n <count>", "how many", wholeNumber(1, MAX_N), 10)
    .action((name: string, options: { n: number }, command: Command) =>
      withStream(name, command, async (store) => {
        const entries = await store.streams.peek({ stream: name, n: options.n });
        printEntries(
          terminal,
          entries.map(({ raw }) => raw),
        );
      }),
    );
}

function addPop(stream: Command, terminal: Terminal): void {
  addTargetOptions(
    stream.command("pop <name>").description("take the oldest entries; they are gone from the stream"),
  )
    .option("-n <count>", "at most how many", wholeNumber(1, MAX_N), 1)
    .option("--wait <seconds>", "how long to wait for the first one", seconds(MAX_WAIT_SECONDS), 0)
    .action((name: string, options: { n: number; wait: number }, command: Command) =>
      withStream(name, command, async (store) =>
        printEntries(
          terminal,
          await popWaiting(store, { stream: name, n: options.n, waitMs: options.wait * 1000 }),
        ),
      ),
    );
}

function addTail(stream: Command, terminal: Terminal): void {
  addTargetOptions(stream.command("tail <name>").description("follow what is pushed, without taking it"))
    .option("-n <count>", "how many of the newest entries to show first", wholeNumber(0, MAX_N), 0)
    .action((name: string, options: { n: number }, command: Command) =>
      withStream(name, command, async (store) => {
        const { ended } = followStream(store, {
          stream: name,
          last: options.n,
          onEntry: (raw) => terminal.print(`${terminal.json ? entryJsonLine(raw) : entryLine(raw)}\n`),
          onTrouble: (message) => terminal.complain(`fleet: ${escapeControls(redactText(message))}\n`),
          signal: untilStopped(),
        });
        await ended;
      }),
    );
}

function addLength(stream: Command, terminal: Terminal): void {
  addTargetOptions(stream.command("length <name>").description("how many entries lie in it")).action(
    (name: string, _options, command: Command) =>
      withStream(name, command, async (store) => {
        const length = await store.streams.length({ stream: name });
        terminal.print(terminal.json ? `${JSON.stringify({ name, length })}\n` : `${length}\n`);
      }),
  );
}

/** Aborts at Ctrl-C, which is the regular end of a command that follows. */
function untilStopped(): AbortSignal {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
  return stop.signal;
}

/** Opens the store and makes sure that the stream is there. */
async function withStream(
  name: string,
  command: Command,
  use: (store: Store) => Promise<void>,
): Promise<void> {
  checkName("stream", name);
  await withStore(command.optsWithGlobals<TargetFlags>(), async (store) => {
    if ((await store.streams.stats({ stream: name })) === undefined) throw await unknownStream(store, name);
    await use(store);
  });
}

async function unknownStream(store: Store, name: string): Promise<FleetError> {
  const names = await store.streams.list();
  return notFound("stream", name, names, { others: '"fleet stream ls" lists all' });
}

function printEntries(terminal: Terminal, entries: readonly string[]): void {
  if (terminal.json) terminal.print(`[${entries.map(entryJsonLine).join(",")}]\n`);
  else if (entries.length > 0) terminal.print(`${entries.map(entryLine).join("\n")}\n`);
}
