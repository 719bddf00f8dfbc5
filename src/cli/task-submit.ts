// `fleet task submit`: payloads are checked against what the workers have published, as a contract would check them.
import { text as readText } from "node:stream/consumers";
import { QUEUE_DEFAULTS, type QueueContract } from "../contracts/queue.ts";
import { FleetError } from "../errors.ts";
import { SILENT } from "../internal/log.ts";
import type { TaskHandle } from "../primitives/queue.ts";
import type { SubmitOptions } from "../primitives/queue-options.ts";
import { Queues } from "../primitives/queues.ts";
import type { Store } from "../store/store.ts";
import type { TargetFlags } from "./options.ts";
import { findQueue, type KnownQueue } from "../control/known-queue.ts";
import { publishedContract, uncheckedContract } from "../control/published-tasks.ts";
import type { Validated } from "../control/verdicts.ts";
import { fits, judged } from "./judged.ts";
import type { Terminal } from "./terminal.ts";

export interface SubmitFlags extends TargetFlags {
  id?: string;
  /** In ms, as all lengths of time here. */
  delay?: number;
  at?: Date;
  priority?: number;
  key?: string;
  dedupeKey?: string;
  onDuplicate?: SubmitOptions["onDuplicate"];
  dedupeWindow?: number;
  maxAttempts?: number;
  timeout?: number;
  ttl?: number;
  wait?: number;
  unchecked?: boolean;
}

export async function submitTasks(
  store: Store,
  {
    name,
    texts,
    flags,
    terminal,
  }: { name: string; texts: readonly string[]; flags: SubmitFlags; terminal: Terminal },
): Promise<void> {
  const payloads = await payloadsOf(texts);
  const contract = contractFor(await findQueue(store, name), flags.unchecked === true);
  const whereOf = (at: number) => `queue "${name}": payload ${at}`;
  for (const [at, payload] of payloads.entries()) await fits(contract.payload, payload, whereOf(at));
  const validated =
    flags.unchecked === true ? null : await judged(store, { automation: name }, payloads, whereOf);
  const queues = new Queues(store, { log: SILENT });
  try {
    const queue = queues.handle(contract);
    const handles = await queue.submitMany(payloads, optionsOf(flags));
    if (flags.wait === undefined) return print(terminal, { queue: name, validated, handles });
    if (!terminal.json) for (const { id } of handles) terminal.complain(`waiting for ${id}\n`);
    const results = await Promise.all(
      handles.map((handle) => handle.result({ waitSeconds: (flags.wait as number) / 1000 })),
    );
    print(terminal, { queue: name, validated, handles, results });
  } finally {
    await queues.close();
  }
}

function print(
  terminal: Terminal,
  {
    queue,
    validated,
    handles,
    results,
  }: {
    queue: string;
    /** Null for what was not checked. */
    validated: Validated | null;
    handles: readonly TaskHandle[];
    results?: readonly unknown[];
  },
): void {
  if (terminal.json) {
    const tasks = handles.map(({ id, outcome }, at) => ({
      id,
      outcome,
      ...(results === undefined ? {} : { result: results[at] ?? null }),
    }));
    terminal.print(`${JSON.stringify({ queue, tasks, validated })}\n`);
    return;
  }
  const lines =
    results?.map((result) => JSON.stringify(result ?? null)) ??
    handles.map(({ id, outcome }) => (outcome === "submitted" ? id : `${id} (${outcome})`));
  for (const line of lines) terminal.print(`${line}\n`);
}

function contractFor({ name, stats, published }: KnownQueue, unchecked: boolean): QueueContract {
  if (published !== undefined) {
    const { options } = published;
    return unchecked ? uncheckedContract(name, options) : publishedContract(published);
  }
  if (!unchecked)
    throw new FleetError(
      "FLEET_USAGE",
      `no worker has published what tasks of "${name}" look like, so the payload cannot be checked; start a worker that runs "${name}", or say --unchecked`,
    );
  const maxPayloadBytes = stats?.settings.maxPayloadBytes ?? QUEUE_DEFAULTS.maxPayloadBytes;
  return uncheckedContract(name, { ...QUEUE_DEFAULTS, maxPayloadBytes });
}

function optionsOf(flags: SubmitFlags): SubmitOptions {
  const { id, delay, at, priority, key, dedupeKey, onDuplicate, dedupeWindow, maxAttempts, timeout, ttl } =
    flags;
  const given = {
    id,
    delaySeconds: inSeconds(delay),
    runAt: at,
    priority,
    key,
    dedupeKey,
    onDuplicate,
    dedupeSeconds: inSeconds(dedupeWindow),
    maxAttempts,
    timeoutSeconds: inSeconds(timeout),
    ttlSeconds: inSeconds(ttl),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function inSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

/** Each argument is a payload as JSON; `-` stands for the lines of stdin. */
export async function payloadsOf(texts: readonly string[]): Promise<unknown[]> {
  const payloads: unknown[] = [];
  for (const [at, given] of texts.entries()) {
    if (given !== "-") {
      payloads.push(parse(given, texts.length === 1 ? "the payload" : `payload ${at}`));
      continue;
    }
    const lines = (await readText(process.stdin)).split("\n");
    for (const [line, json] of lines.entries())
      if (json.trim() !== "") payloads.push(parse(json, `line ${line + 1} of stdin`));
  }
  return payloads;
}

export function parse(json: string, what: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch (error) {
    throw new FleetError("FLEET_USAGE", `${what} is not JSON: ${(error as Error).message}`, { cause: error });
  }
}
