// `fleet config get|set|history|diff|rollback|canary`: what automations are configured with.
import { InvalidArgumentError, type Command } from "commander";
import { checkName } from "../contracts/name.ts";
import {
  configAt,
  type ConfigChanged,
  configHistory,
  type ConfigWish,
  patchConfig,
  promoteCanary,
  readConfig,
  rollbackConfig,
  stopCanary,
} from "../control/config.ts";
import { FleetError } from "../errors.ts";
import { CONFIG_HISTORY, configDiff, effectiveConfig, versionOf } from "../protocol/config.ts";
import type { Canary } from "../protocol/spec.ts";
import type { Store } from "../store/store.ts";
import {
  canarySize,
  changeWords,
  configText,
  diffLines,
  historyText,
  patchOf,
  wholeOf,
} from "./config-words.ts";
import { untilFollowed } from "./follow.ts";
import { addTargetOptions, labelList, seconds, type TargetFlags, wholeNumber } from "./options.ts";
import { withStore } from "./target.ts";
import { parse } from "./task-submit.ts";
import type { Terminal } from "./terminal.ts";
import { whoAmI } from "./whoami.ts";

const MAX_WAIT_SECONDS = 86_400;

interface ChangeFlags extends TargetFlags {
  ifMatch?: number;
  wait?: number;
  note?: string;
}

interface SetFlags extends ChangeFlags {
  jsonPatch?: string;
  replace?: boolean;
  labels?: Record<string, string>;
  canary?: Canary["size"];
}

const SET_EXAMPLES = `
A value is JSON where it reads as that, else a text; null takes the field away. Secrets are written as where to find
them: env:NAME or file:/path.

Examples:
  fleet config set url-pinger everySeconds=2 --wait 10
  fleet config set url-pinger --json-patch '{"urls":["https://example.com"]}' --if-match 7
  fleet config set scraper apiKey=env:API_KEY
  fleet config set scraper proxy=eu.example:3128 --labels region=eu
  fleet config set scraper mode=fast --canary 0.2`;

export function addConfig(program: Command, terminal: Terminal): void {
  const config = program.command("config").description("look at configs of automations, or change them");
  const changing = (command: Command) =>
    addTargetOptions(command)
      .option("--if-match <generation>", "only on top of this generation", wholeNumber(1))
      .option("--note <text>", "why, for the history")
      .option(
        "--wait <seconds>",
        "wait until all slots have it; fails after so long",
        seconds(MAX_WAIT_SECONDS),
      );

  addTargetOptions(config.command("get <name>").description("the config as it stands in the store"))
    .option("--labels <pairs>", "as workers with these labels get it", labelList)
    .action((name: string, _options, command: Command) =>
      get(command.optsWithGlobals<SetFlags>(), name, terminal),
    );

  changing(config.command("set <name> [changes...]").description("change fields, as name=value"))
    .option("--json-patch <json>", "a JSON merge patch (RFC 7396) instead of changes")
    .option("--replace", "what is given takes the place of the whole config")
    .option("--labels <pairs>", "only on workers with these labels", labelList)
    .option("--canary <share>", "only in this share of the slots (0.2, 20%), or in so many (3)", sizeFlag)
    .addHelpText("after", SET_EXAMPLES)
    .action((name: string, changes: string[], _options, command: Command) => {
      const flags = command.optsWithGlobals<SetFlags>();
      const edit = editOf(changes, flags);
      return act(flags, name, terminal, (store, wish) => patchConfig(store, name, edit, wish));
    });

  addTargetOptions(config.command("history <name>").description("changes of a config, newest first"))
    .option("-n <count>", "at most so many", wholeNumber(1, CONFIG_HISTORY), 20)
    .action((name: string, _options, command: Command) =>
      history(command.optsWithGlobals<TargetFlags & { n: number }>(), name, terminal),
    );

  addTargetOptions(
    config
      .command("diff")
      .argument("<name>")
      .argument("<from>", "a generation", wholeNumber(1))
      .argument("[to]", "another one; default what stands now", wholeNumber(1))
      .description("where the configs of two generations differ"),
  ).action((name: string, from: number, to: number | undefined, _options, command: Command) =>
    diff(command.optsWithGlobals<TargetFlags>(), name, { from, to, terminal }),
  );

  changing(
    config
      .command("rollback")
      .argument("<name>")
      .argument("<generation>", "whose config comes back, as a new generation", wholeNumber(1))
      .description("make an earlier config the present one"),
  ).action((name: string, generation: number, _options, command: Command) =>
    act(command.optsWithGlobals<ChangeFlags>(), name, terminal, (store, wish) =>
      rollbackConfig(store, name, generation, wish),
    ),
  );

  const canary = config.command("canary").description("end the trial of a config");
  changing(canary.command("promote <name>").description("give it to all slots")).action(
    (name: string, _options, command: Command) =>
      act(command.optsWithGlobals<ChangeFlags>(), name, terminal, (store, wish) =>
        promoteCanary(store, name, wish),
      ),
  );
  changing(canary.command("stop <name>").description("drop it")).action(
    (name: string, _options, command: Command) =>
      act(command.optsWithGlobals<ChangeFlags>(), name, terminal, (store, wish) =>
        stopCanary(store, name, wish),
      ),
  );
}

function sizeFlag(text: string): Canary["size"] {
  const size = canarySize(text);
  if (size !== undefined) return size;
  throw new InvalidArgumentError("It must be a share of the slots (0.2, 20%) or a number of them (3).");
}

function editOf(changes: readonly string[], flags: SetFlags): Parameters<typeof patchConfig>[2] {
  const { jsonPatch, replace, labels, canary } = flags;
  if ((changes.length === 0) === (jsonPatch === undefined))
    throw new FleetError(
      "FLEET_USAGE",
      jsonPatch === undefined
        ? "nothing to change is given; write name=value, or --json-patch"
        : "name=value and --json-patch do not go together; choose one",
    );
  const value = jsonPatch === undefined ? patchOf(changes) : parse(jsonPatch, "--json-patch");
  return {
    ...(replace === true ? { replace: value } : { patch: value }),
    ...(labels === undefined ? {} : { labels }),
    ...(canary === undefined ? {} : { canary }),
  };
}

async function act(
  flags: ChangeFlags,
  name: string,
  terminal: Terminal,
  change: (store: Store, wish: ConfigWish) => Promise<ConfigChanged>,
): Promise<void> {
  checkName("automation", name);
  const { ifMatch, note, wait } = flags;
  const wish = {
    by: whoAmI(),
    ...(ifMatch === undefined ? {} : { ifMatch }),
    ...(note === undefined ? {} : { note }),
  };
  await withStore(flags, async (store) => {
    const result = await change(store, wish);
    if (!terminal.json) terminal.print(`${changeWords(name, result)}\n`);
    const { generation } = result.desired;
    const goal = { name, slotId: undefined, freshSince: undefined, configSince: generation };
    const followed = wait === undefined ? null : await untilFollowed(store, goal, wait);
    if (terminal.json) terminal.print(`${JSON.stringify(jsonOf(name, result, followed !== null))}\n`);
    else if (followed !== null) terminal.print(`${followed}\n`);
  });
}

function jsonOf(
  name: string,
  { changed, desired, diff: differences, checked, warnings }: ConfigChanged,
  followed: boolean,
) {
  const { generation, config, overrides, canary } = versionOf(desired);
  return {
    automation: name,
    changed,
    generation,
    config,
    overrides,
    canary,
    diff: differences,
    checked,
    warnings,
    followed,
  };
}

async function get(flags: SetFlags, name: string, terminal: Terminal): Promise<void> {
  checkName("automation", name);
  await withStore(flags, async (store) => {
    const desired = await readConfig(store, name);
    const { labels } = flags;
    if (labels !== undefined) {
      const config = effectiveConfig(desired, { labels }) ?? null;
      return terminal.print(`${JSON.stringify(config, undefined, terminal.json ? 0 : 2)}\n`);
    }
    if (!terminal.json) return terminal.print(configText(name, desired));
    const set = { by: desired.changedBy.config };
    return terminal.print(`${JSON.stringify({ automation: name, ...versionOf(desired), ...set })}\n`);
  });
}

async function history(flags: TargetFlags & { n: number }, name: string, terminal: Terminal): Promise<void> {
  checkName("automation", name);
  await withStore(flags, async (store) => {
    const versions = await configHistory(store, name, { limit: flags.n });
    const text = terminal.json ? `${JSON.stringify(versions)}\n` : historyText(versions, await store.now());
    terminal.print(text);
  });
}

async function diff(
  flags: TargetFlags,
  name: string,
  { from, to, terminal }: { from: number; to: number | undefined; terminal: Terminal },
): Promise<void> {
  checkName("automation", name);
  await withStore(flags, async (store) => {
    const { generation } = await readConfig(store, name);
    const [a, b] = await Promise.all([from, to ?? generation].map((one) => configAt(store, name, one)));
    const found = a === undefined || b === undefined ? [] : configDiff(wholeOf(a), wholeOf(b));
    if (terminal.json) return terminal.print(`${JSON.stringify(found)}\n`);
    return terminal.print(found.length === 0 ? "No difference.\n" : `${diffLines(found).join("\n")}\n`);
  });
}
