// `fleet drain`, `cordon`, `uncordon` and `remove`: what is asked of a worker, straight in the store.
import type { Command } from "commander";
import { checkName } from "../contracts/name.ts";
import {
  type Asked,
  cordon,
  deadlineOf,
  drain,
  DRAIN_SECONDS,
  MAX_DRAIN_SECONDS,
  remove,
  uncordon,
} from "../control/operations.ts";
import { FleetError } from "../errors.ts";
import { hintFor } from "../internal/suggest.ts";
import type { Store } from "../store/store.ts";
import { drainsAlready } from "./drain-words.ts";
import { CommandFailed, EXIT } from "./exit.ts";
import { addTargetOptions, seconds, type TargetFlags } from "./options.ts";
import { withStore } from "./target.ts";
import type { Terminal } from "./terminal.ts";
import { untilGone } from "./until-gone.ts";
import { whoAmI } from "./whoami.ts";

/** Left out, `--wait` waits for so much longer than the deadline: for the word that it is gone. */
const WAIT_LONGER_SECONDS = 15;

interface DrainFlags extends TargetFlags {
  deadline?: number;
  wait?: true | number;
}

export function addOperate(program: Command, terminal: Terminal): void {
  addTargetOptions(program.command("drain <worker>").description("let a worker end its slots and exit"))
    .option(
      "--deadline <seconds>",
      `then by force; by default after ${DRAIN_SECONDS} s, and one that drains already keeps its deadline unless another is given`,
      seconds(MAX_DRAIN_SECONDS),
    )
    .option(
      "--wait [seconds]",
      `wait until it is gone, also while the store is away; fails after so long, by default ${WAIT_LONGER_SECONDS} s after the deadline`,
      seconds(MAX_DRAIN_SECONDS),
    )
    .addHelpText("after", "\nExamples:\n  fleet drain host-a-1f2e3d --wait\n  fleet drain w1 --deadline 600")
    .action((id: string, _options, command: Command) =>
      operate(command.optsWithGlobals<DrainFlags>(), id, (store, flags) =>
        drainWorker(store, id, flags, terminal),
      ),
    );

  addTargetOptions(program.command("cordon <worker>").description("place no new slots on a worker"))
    .addHelpText("after", "\nExamples:\n  fleet cordon host-a-1f2e3d")
    .action((id: string, _options, command: Command) =>
      operate(command.optsWithGlobals<TargetFlags>(), id, async (store) => {
        const asked = await cordon(store.registry, id, whoAmI());
        say(terminal, id, asked, {
          changed: `${id} is cordoned: what it has stays, nothing new is placed on it. "fleet uncordon ${id}" takes that back.`,
          unchanged: `${id} is cordoned already; nothing was changed.`,
        });
      }),
    );

  addTargetOptions(program.command("uncordon <worker>").description("place slots on a worker again"))
    .addHelpText("after", "\nExamples:\n  fleet uncordon host-a-1f2e3d")
    .action((id: string, _options, command: Command) =>
      operate(command.optsWithGlobals<TargetFlags>(), id, async (store) => {
        const asked = await uncordon(store.registry, id);
        say(terminal, id, asked, {
          changed: `${id} is not cordoned any more: slots are placed on it again.`,
          unchanged: `${id} is not cordoned; nothing was changed.`,
        });
      }),
    );

  addTargetOptions(program.command("remove <worker>").description("forget an offline worker at once"))
    .addHelpText("after", "\nExamples:\n  fleet remove host-a-1f2e3d")
    .action((id: string, _options, command: Command) =>
      operate(command.optsWithGlobals<TargetFlags>(), id, async (store) => {
        const removed = await remove(store.registry, id);
        if (removed.outcome === "unknown") throw unknownWorker(id, removed.ids);
        if (removed.outcome === "alive")
          throw new CommandFailed(
            "FLEET_WORKERS_ALIVE",
            `${id} is alive: "fleet drain ${id}" lets it end; one that was killed is offline when its lease has ended. Nothing was removed`,
          );
        terminal.print(
          terminal.json
            ? `${JSON.stringify({ worker: id, removed: true })}\n`
            : `${id} is forgotten, with all that was asked of it.\n`,
        );
      }),
    );
}

function operate<F extends TargetFlags>(
  flags: F,
  id: string,
  act: (store: Store, flags: F) => Promise<void>,
): Promise<void> {
  checkName("worker", id);
  return withStore(flags, (store) => act(store, flags));
}

async function drainWorker(
  store: Store,
  id: string,
  { deadline, wait }: DrainFlags,
  terminal: Terminal,
): Promise<void> {
  const given = deadline === undefined ? {} : { deadlineSeconds: deadline };
  const asked = await drain(store.registry, id, { ...given, by: whoAmI() });
  if (asked.outcome === "unknown") throw unknownWorker(id, asked.ids);
  const { outcome, worker } = asked;
  const mayTake = deadline ?? (deadlineOf(worker) ?? DRAIN_SECONDS * 1000) / 1000;
  const words = {
    changed: `${id} is asked to drain: it ends its slots and exits, after ${mayTake} s by force.`,
    moved: `${id} drains already; it is asked to end by force after ${mayTake} s from now.`,
    offline: `${id} is offline already; there is nothing to drain.`,
  };
  if (!terminal.json)
    terminal.print(
      `${outcome === "unchanged" ? drainsAlready(worker, deadline, await store.now()) : words[outcome]}\n`,
    );
  const waits = wait !== undefined && outcome !== "offline";
  const gone = waits
    ? await untilGone(
        store.registry,
        worker,
        wait === true ? mayTake + WAIT_LONGER_SECONDS : wait,
        (words) => void (terminal.json || terminal.complain(`${words}\n`)),
      )
    : undefined;
  if (terminal.json)
    terminal.print(
      `${JSON.stringify({ worker: id, outcome, gone: outcome === "offline" || gone !== undefined, forced: gone?.forced ?? null })}\n`,
    );
  else if (gone !== undefined)
    terminal.print(gone.forced ? `${id} is gone; the drain was forced.\n` : `${id} is gone.\n`);
  if (gone?.forced === true) process.exitCode = EXIT.forced;
}

function say(
  terminal: Terminal,
  id: string,
  asked: Exclude<Asked, { outcome: "offline" }>,
  words: { changed: string; unchanged: string },
): void {
  if (asked.outcome === "unknown") throw unknownWorker(id, asked.ids);
  terminal.print(
    terminal.json
      ? `${JSON.stringify({ worker: id, changed: asked.outcome === "changed" })}\n`
      : `${words[asked.outcome]}\n`,
  );
}

function unknownWorker(id: string, ids: readonly string[]): FleetError {
  const hint = hintFor(id, ids, { none: "no worker has registered" });
  return new FleetError("FLEET_NOT_FOUND", `there is no worker "${id}" (${hint}); nothing was changed`);
}
