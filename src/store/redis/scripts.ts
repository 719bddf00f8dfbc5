/**
 * Lua scripts, called by the names of their keys and arguments. Each `.lua` file opens with
 *
 *     -- <what it does>
 *     -- USES clock                      preludes put before it, if any
 *     -- KEYS stream, meta               names, in the order of KEYS[1], KEYS[2], …
 *     -- ARGV clock, n, entries...       names, in the order of ARGV[1], …; the last may stand for any number
 *     -- FLAGS allow-oom                it also runs where memory is short: it makes room, or a fleet that drains what it has needs it
 *     -- ->   what it answers
 *
 * `scripts.test.ts` compares these lines with the body.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { ownFile } from "../../internal/own-files.ts";
import type { StoreOptions } from "../store.ts";
import type { Link } from "./link.ts";
import { type LibraryScript, ScriptLibrary } from "./script-library.ts";

export const SCRIPT_NAMES = [
  "counter-change",
  "counter-page",
  "counter-remove",
  "edge-list",
  "edge-observe",
  "edge-sweep",
  "event-publish",
  "event-sweep",
  "fleet-beat",
  "fleet-claim-slots",
  "fleet-deregister",
  "fleet-lead",
  "fleet-open",
  "fleet-prune-workers",
  "fleet-put-assignments",
  "fleet-put-desired",
  "fleet-register",
  "fleet-release-slots",
  "fleet-remove-worker",
  "fleet-resign",
  "fleet-set-state",
  "fleet-set-wish",
  "fleet-take-turn",
  "fleet-view",
  "limit-give-back",
  "limit-show",
  "limit-sweep",
  "limit-take",
  "lock-acquire",
  "lock-extend",
  "lock-leave",
  "lock-lose",
  "lock-release",
  "lock-show",
  "name-enter",
  "now",
  "pool-change",
  "pool-claim",
  "pool-count",
  "pool-declare",
  "pool-get",
  "pool-keep",
  "pool-leave",
  "pool-lose",
  "pool-page",
  "pool-put",
  "pool-put-refill",
  "pool-renew",
  "pool-retire",
  "pool-stats",
  "pool-sweep",
  "queue-cancel",
  "queue-declare",
  "queue-ended",
  "queue-get",
  "queue-keep",
  "queue-lose",
  "queue-page",
  "queue-pause-schedule",
  "queue-put-schedule",
  "queue-remove-schedule",
  "queue-retry",
  "queue-schedules",
  "queue-stats",
  "queue-submit",
  "queue-sweep",
  "queue-ticked",
  "queue-turn",
  "stream-declare",
  "stream-length",
  "stream-peek",
  "stream-pop",
  "stream-push",
  "stream-quarantine",
  "stream-stats",
  "stream-sweep",
] as const;
export type ScriptName = (typeof SCRIPT_NAMES)[number];

export interface ScriptHeader {
  uses: readonly string[];
  flags: readonly string[];
  keys: readonly string[];
  args: readonly string[];
  /** The last argument stands for any number of values. */
  variadic: boolean;
}

/**
 * Scripts that use one of these preludes are functions of a library, whose preludes are made once and not with each call: a call that does
 * little takes a third less. Nothing of a call may be left there when the next one begins.
 */
const LIBRARIES = ["queue"];

interface Script extends ScriptHeader {
  text: string;
  sha: string;
  library: ScriptLibrary | undefined;
}

export interface ScriptCall {
  keys: Record<string, string>;
  args?: Record<string, string>;
  /** Values of the argument that stands for any number. */
  rest?: readonly string[];
  /** See `CallOptions`. */
  repeatable: boolean;
}

/** Runs a script and answers what it returned; on a server that does not know it (restarted, flushed, new) it is sent along. */
export type RunScript = <T>(name: ScriptName, call: ScriptCall) => Promise<T>;

export function readLua(name: string): string {
  return readFileSync(ownFile(`store/redis/lua/${name}.lua`), "utf8");
}

export function parseHeader(text: string): ScriptHeader {
  const list = (word: string) => {
    const line = new RegExp(`^-- ${word} (.*)$`, "m").exec(text)?.[1] ?? "";
    return line
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "");
  };
  const args = list("ARGV");
  const variadic = args.at(-1)?.endsWith("...") === true;
  return {
    uses: list("USES"),
    flags: list("FLAGS"),
    keys: list("KEYS"),
    args: args.map((name) => name.replace("...", "")),
    variadic,
  };
}

/**
 * Preludes come first, but those that a line `-- THEN pool, pool-item` in the body names come there: what is answered before that does
 * not wait until they are made.
 */
function load(name: ScriptName, libraries: readonly ScriptLibrary[]): Script {
  const body = readLua(name);
  const header = parseHeader(body);
  const later = [...body.matchAll(/^-- THEN (.*)$/gm)].flatMap(([, names = ""]) => names.split(", "));
  const first = header.uses.filter((prelude) => !later.includes(prelude));
  const whole = body.replaceAll(/^-- THEN (.*)$/gm, (_, names: string) =>
    names.split(", ").map(readLua).join("\n"),
  );
  // The first line of a script says what a function is told when it is registered.
  const flags = header.flags.map((flag) => `#!lua flags=${flag}`);
  const text = [...flags, ...first.map(readLua), whole].join("\n");
  const sha = createHash("sha1").update(text).digest("hex");
  return { ...header, text, sha, library: libraries.find((library) => library.has(name)) };
}

function loadLibrary(shared: string): ScriptLibrary {
  const scripts: LibraryScript[] = [];
  const preludes = new Set<string>();
  for (const name of SCRIPT_NAMES) {
    const body = readLua(name);
    const { uses } = parseHeader(body);
    if (!uses.includes(shared)) continue;
    scripts.push({ name, body });
    for (const prelude of uses) preludes.add(prelude);
  }
  return new ScriptLibrary(shared, [...preludes].map(readLua), scripts);
}

/** `clock`: what the scripts' argument of that name holds; see `clock.lua`. */
export function scriptRunner(link: Link, clock: () => string): RunScript {
  const libraries = LIBRARIES.map(loadLibrary);
  const scripts = new Map<ScriptName, Script>(SCRIPT_NAMES.map((name) => [name, load(name, libraries)]));
  return <T>(name: ScriptName, { keys, args = {}, rest = [], repeatable }: ScriptCall) => {
    const script = scripts.get(name) as Script;
    const { library } = script;
    const sent = library?.isUsable
      ? ["FCALL", library.functionOf(name), String(script.keys.length)]
      : ["EVALSHA", script.sha, String(script.keys.length)];
    for (const key of script.keys) sent.push(given(keys, key, name));
    const fixed = script.variadic ? script.args.length - 1 : script.args.length;
    for (let i = 0; i < fixed; i++) {
      const arg = script.args[i] as string;
      sent.push(arg === "clock" ? clock() : given(args, arg, name));
    }
    const whole = rest.length === 0 ? sent : sent.concat(rest);
    return link.call(whole, {
      repeatable,
      key: sent[3] as string,
      instead: (reply, send) => {
        const unknown = reply.startsWith("NOSCRIPT") || library?.isMissing(reply, send);
        return unknown ? ["EVAL", script.text, ...whole.slice(2)] : undefined;
      },
    }) as Promise<T>;
  };
}

function given(values: Record<string, string>, name: string, script: string): string {
  const value = values[name];
  if (value === undefined) throw new Error(`script ${script}: no value for ${name}`);
  return value;
}

/** The `clock` argument: empty for the server's clock, `+n` or `-n` to shift it, `=n` for one that stands still. */
export function clockArgument(options: Pick<StoreOptions, "clockOffsetMs" | "frozenNow">): () => string {
  const { clockOffsetMs = 0, frozenNow } = options;
  if (frozenNow !== undefined) return () => `=${Math.floor(frozenNow())}`;
  const shift = clockOffsetMs === 0 ? "" : `${clockOffsetMs > 0 ? "+" : ""}${Math.floor(clockOffsetMs)}`;
  return () => shift;
}
