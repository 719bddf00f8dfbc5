// `fleet scale`, `pause`, `resume` and `recycle`: changes of what is desired, straight in the store.
import type { Command } from "commander";
import { checkName } from "../contracts/name.ts";
import { type Change, changeDesired, MAX_SLOTS, pause, recycle, resume, scale } from "../control/desire.ts";
import { unknownAutomation } from "../control/not-found.ts";
import type { Store } from "../store/store.ts";
import { type Goal, untilFollowed } from "./follow.ts";
import { addTargetOptions, seconds, type TargetFlags, wholeNumber } from "./options.ts";
import { steered, type Steered, type Verb, wordsOf } from "./steer-words.ts";
import { withStore } from "./target.ts";
import type { Terminal } from "./terminal.ts";
import { whoAmI } from "./whoami.ts";

const MAX_WAIT_SECONDS = 86_400;

interface SteerFlags extends TargetFlags {
  wait?: number;
  slot?: number;
}

interface Steering {
  verb: Verb;
  name: string;
  slotId?: number | undefined;
  change: Change;
}

export function addSteer(program: Command, terminal: Terminal): void {
  const act = (command: Command, steering: Steering) =>
    steer(command.optsWithGlobals<SteerFlags>(), steering, terminal);

  addOptions(
    program
      .command("scale")
      .argument("<name>")
      .argument("<count>", "0 to 10 000", wholeNumber(0, MAX_SLOTS))
      .description("say how many slots an automation has"),
  )
    .addHelpText("after", "\nExamples:\n  fleet scale scraper 8\n  fleet scale scraper 0 --wait 30")
    .action((name: string, slots: number, _options, command: Command) => {
      const by = whoAmI();
      return act(command, { verb: "scale", name, change: (desired) => scale(desired, slots, by) });
    });

  addOptions(
    program.command("pause <name>").description("end all slots of an automation until it is resumed"),
  )
    .addHelpText("after", "\nExamples:\n  fleet pause scraper --wait 30")
    .action((name: string, _options, command: Command) =>
      act(command, { verb: "pause", name, change: pause }),
    );

  addOptions(program.command("resume <name>").description("run a paused automation again"))
    .addHelpText("after", "\nExamples:\n  fleet resume scraper")
    .action((name: string, _options, command: Command) =>
      act(command, { verb: "resume", name, change: resume }),
    );

  addOptions(
    program
      .command("recycle <name>")
      .description("move slots to fresh processes, one by one; closes open circuits"),
  )
    .option("--slot <id>", "this slot alone", wholeNumber(0, MAX_SLOTS - 1))
    .addHelpText("after", "\nExamples:\n  fleet recycle scraper\n  fleet recycle scraper --slot 3 --wait 60")
    .action((name: string, { slot }: SteerFlags, command: Command) =>
      act(command, { verb: "recycle", name, slotId: slot, change: (desired) => recycle(desired, slot) }),
    );
}

function addOptions(command: Command): Command {
  return addTargetOptions(command).option(
    "--wait <seconds>",
    "wait until the slots have followed; fails after so long",
    seconds(MAX_WAIT_SECONDS),
  );
}

async function steer(flags: SteerFlags, steering: Steering, terminal: Terminal): Promise<void> {
  checkName("automation", steering.name);
  await withStore(flags, async (store) => {
    const result = await change(store, steering);
    if (!terminal.json) terminal.print(`${wordsOf(result)}\n`);
    const followed = flags.wait === undefined ? null : await untilFollowed(store, goalOf(result), flags.wait);
    if (terminal.json) terminal.print(`${JSON.stringify(jsonOf(result, followed !== null))}\n`);
    else if (followed !== null) terminal.print(`${followed}\n`);
  });
}

async function change(store: Store, { verb, name, slotId, change: to }: Steering): Promise<Steered> {
  const changed = await changeDesired(store.registry, name, to);
  if (changed.outcome === "unknown") throw unknownAutomation(name, changed.names);
  const [view, health] = await Promise.all([store.registry.view(), store.registry.slotHealth()]);
  const before = changed.outcome === "changed" ? changed.before : undefined;
  return steered({ verb, name, slotId, desired: changed.desired, before, view, health });
}

function goalOf({ verb, name, slotId, desired, before }: Steered): Goal {
  const fresh = verb === "recycle" && before !== undefined;
  return { name, slotId, freshSince: fresh ? desired.generation : undefined };
}

function jsonOf(
  { name, slotId, desired, before, closed, unplaced, why }: Steered,
  followed: boolean,
): object {
  return {
    automation: name,
    ...(slotId === undefined ? {} : { slot_id: slotId }),
    changed: before !== undefined,
    generation: desired.generation,
    slots: desired.slots,
    paused: desired.paused,
    circuits_closed: closed,
    unplaced,
    unplaced_reason: why,
    followed,
  };
}
