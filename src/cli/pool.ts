// `fleet pool …`: what is in the pools, who holds and who waits, straight from the store.
import { type Command, InvalidArgumentError, Option } from "commander";
import { ITEM_STATES, type ItemRecord, type ItemState, type ItemTags } from "../protocol/pool.ts";
import type { Store } from "../store/store.ts";
import { addTargetOptions, span, type TargetFlags, wholeNumber } from "./options.ts";
import type { ClaimFlags, PutFlags } from "./pool-put.ts";
import { itemLine, poolLine, renderItems, renderPools } from "./pool-view.ts";
import { readEach } from "./read-each.ts";
import { withStore } from "./target.ts";
import type { Terminal } from "./terminal.ts";

const PAGE = 500;
/** What is going on comes first. */
const ORDER: readonly ItemState[] = ["held", "free", "cooling", "retired"];

export function addPool(program: Command, terminal: Terminal): void {
  const pool = program
    .command("pool")
    .description("look into pools, put items in, claim and retire them")
    .addHelpText(
      "after",
      `
Examples:
  fleet pool ls                                       all pools, and who waits
  fleet pool items sessions --state held              who holds what
  fleet pool put sessions '{"cookie":"…"}' --tags '{"site":"a"}' --ttl 1h
  fleet pool claim sessions --where site=a --hold 10m
  fleet pool retire sessions 01993c5e-8f6b-7c3a-a1b2-c3d4e5f60718 --reason banned`,
    );
  addLs(pool, terminal);
  addItems(pool, terminal);
  addPut(pool, terminal);
  addClaim(pool, terminal);
  addEnds(pool, terminal);
}

function addLs(pool: Command, terminal: Terminal): void {
  addTargetOptions(
    pool.command("ls").description("all pools: how many items are free, held, cooling, retired"),
  ).action((_options, command: Command) =>
    withStore(command.optsWithGlobals<TargetFlags>(), async (store) => {
      const [now, names] = await Promise.all([store.now(), store.pools.list()]);
      const all = await readEach("pool", names, (name) => store.pools.stats({ pool: name }));
      const lines = all.map(({ name, found }) => poolLine(name, found));
      terminal.print(
        terminal.json ? `${JSON.stringify(lines)}\n` : renderPools(lines, now, terminal.colors(1).dim),
      );
    }),
  );
}

interface ItemFlags extends TargetFlags {
  state?: ItemState[];
  where: ItemTags;
  limit: number;
}

function addItems(pool: Command, terminal: Terminal): void {
  whereOption(
    addTargetOptions(
      pool
        .command("items")
        .argument("<pool>", "name of the pool")
        .description("the items of a pool: state, tags, who holds them and for how long"),
    ),
  )
    .option("--state <states>", `in these states, as in held,free: ${ITEM_STATES.join(", ")}`, stateList)
    .option("--limit <count>", "at most so many", wholeNumber(1), 50)
    .addHelpText(
      "after",
      "\nExamples:\n  fleet pool items sessions --state held\n  fleet pool items sessions --where site=a --where tier=pro --json",
    )
    .action((name: string, _options, command: Command) => {
      const flags = command.optsWithGlobals<ItemFlags>();
      return withStore(flags, async (store) => {
        const { findPool } = await import("../control/known-pool.ts");
        await findPool(store, name);
        const [now, items] = [await store.now(), await selectItems(store, name, flags)];
        if (terminal.json) return terminal.print(`${JSON.stringify(items.map(itemLine))}\n`);
        terminal.print(renderItems(items, now, terminal.colors(1).dim));
        if (items.length === flags.limit)
          terminal.complain(`The first ${flags.limit} are shown; --limit shows more.\n`);
      });
    });
}

async function selectItems(store: Store, pool: string, flags: ItemFlags): Promise<ItemRecord[]> {
  const found: ItemRecord[] = [];
  for (const state of ORDER.filter((one) => flags.state?.includes(one) ?? true)) {
    let cursor: string | undefined;
    do {
      const n = Math.min(PAGE, flags.limit - found.length);
      if (n <= 0) return found;
      const page = await store.pools.page({
        pool,
        state,
        where: flags.where,
        n,
        ...(cursor === undefined ? {} : { cursor }),
      });
      found.push(...page.items);
      cursor = page.next;
    } while (cursor !== undefined);
  }
  return found;
}

function addPut(pool: Command, terminal: Terminal): void {
  addTargetOptions(
    pool
      .command("put")
      .argument("<pool>", "name of the pool")
      .argument(
        "<payloads...>",
        "JSON, checked against the pool's schema; - reads one from each line of stdin",
      )
      .description("put items in: all of them or none"),
  )
    .option("--tags <json>", 'tags of each, as in {"site":"a"}; defaults of the schema apply')
    .option("--ttl <time>", "gone so long from now: 90s, 10m, 2h, 3d", span)
    .option("--id <id>", "its id: putting the same id again is harmless")
    .option("--unchecked", "do not check payload and tags")
    .addHelpText(
      "after",
      `
Prints the id of each item. What does not fit is refused with exit code 2, and nothing is put. Where no worker has published a
schema (by an automation that declares its use of the pool), an item is only taken with --unchecked.

Examples:
  fleet pool put sessions '{"cookie":"…"}' --tags '{"site":"a","tier":"pro"}' --ttl 1h
  cat keys.jsonl | fleet pool put keys -`,
    )
    .action(async (name: string, texts: string[], _options, command: Command) => {
      const { putItems } = await import("./pool-put.ts");
      const flags = command.optsWithGlobals<PutFlags>();
      await withStore(flags, (store) => putItems(store, name, texts, { flags, terminal }));
    });
}

function addClaim(pool: Command, terminal: Terminal): void {
  whereOption(
    addTargetOptions(
      pool
        .command("claim")
        .argument("<pool>", "name of the pool")
        .description("take items for a while: prints id, payload and token of each"),
    ),
  )
    .option("--count <count>", "so many, or none", wholeNumber(1, 1000), 1)
    .addOption(
      new Option("--hold <time>", "for so long: 90s, 10m, 2h").argParser(span).default(30_000, "30s"),
    )
    .addOption(
      new Option("--wait <time>", "wait in line for so long").argParser(span).default(0, "not at all"),
    )
    .addHelpText(
      "after",
      "\nThe lease holds for its time, or until: fleet pool release POOL ID TOKEN. Where nothing is free the exit code is 1.\n\nExamples:\n  fleet pool claim sessions --where site=a --where site=b --hold 10m --wait 30s",
    )
    .action(async (name: string, _options, command: Command) => {
      const { claimItems } = await import("./pool-put.ts");
      const flags = command.optsWithGlobals<ClaimFlags>();
      await withStore(flags, (store) => claimItems(store, name, { flags, terminal }));
    });
}

function addEnds(pool: Command, terminal: Terminal): void {
  addTargetOptions(
    pool
      .command("release")
      .argument("<pool>", "name of the pool")
      .argument("<id>", "id of the item")
      .argument("<token>", "as the claim has printed it")
      .description("give back what was claimed"),
  ).action(async (name: string, id: string, token: string, _options, command: Command) => {
    const { releaseItem } = await import("./pool-put.ts");
    const flags = command.optsWithGlobals<TargetFlags>();
    await withStore(flags, (store) => releaseItem(store, name, { id, token, terminal }));
  });
  addTargetOptions(
    pool
      .command("retire")
      .argument("<pool>", "name of the pool")
      .argument("<ids...>", "ids of items")
      .description("take items out of use for ever, whoever holds them"),
  )
    .option("--reason <text>", "why, for people", "")
    .addHelpText("after", "\nExamples:\n  fleet pool retire sessions s1 s2 --reason banned")
    .action(async (name: string, ids: string[], _options, command: Command) => {
      const { retireItems } = await import("./pool-put.ts");
      const flags = command.optsWithGlobals<TargetFlags & { reason: string }>();
      await withStore(flags, (store) => retireItems(store, name, { ids, reason: flags.reason, terminal }));
    });
}

function whereOption(command: Command): Command {
  return command.addOption(
    new Option("--where <tag=value>", "bearing this tag; several values of one tag: any of them")
      .argParser(addTag)
      .default({}, "any item"),
  );
}

function addTag(text: string, before: ItemTags): ItemTags {
  const [, tag, value] = /^([^=]+)=(.*)$/.exec(text) ?? [];
  if (tag === undefined || value === undefined)
    throw new InvalidArgumentError("It must be a tag and its value, as in site=a.");
  const values = new Set([...(before[tag] ?? []), value]);
  return Object.fromEntries(
    Object.entries({ ...before, [tag]: [...values].toSorted() }).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
}

function stateList(text: string): ItemState[] {
  const states = text.split(",").map((state) => state.trim());
  const wrong = states.find((state) => !ITEM_STATES.includes(state as ItemState));
  if (wrong === undefined) return states as ItemState[];
  throw new InvalidArgumentError(`"${wrong}" is no state; there are ${ITEM_STATES.join(", ")}.`);
}
