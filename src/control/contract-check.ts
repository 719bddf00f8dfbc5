/**
 * Whether those who give and those who take through one contract agree on its schema, from what workers have published. Pure.
 *
 * Each version of an automation counts for itself, so old and new may run side by side where their contracts agree. Who only names a
 * contract, without a schema, takes whatever comes.
 */
import type { JsonSchema } from "../contracts/schema/standard.ts";
import type { ContractUse, Manifest, UseDirection } from "../protocol/manifest.ts";
import { workerState, type WorkerRecord } from "../protocol/status.ts";
import { schemaFit } from "./schema-fit.ts";
import type { Fit } from "./schema-node.ts";

export type ContractKind = "stream" | "queue" | "pool" | "topic";

/** One version of an automation, and who has it. */
export interface Party {
  automation: string;
  version: string;
  workers: string[];
}

/** What one party gives and another takes. */
export interface ContractEdge {
  kind: ContractKind;
  name: string;
  /** Of a pool its tags are compared, too. */
  part: "payload" | "tags";
  giver: Party;
  taker: Party;
  /** `"broken"`: there is something that may be given and is not taken. `"unknown"`: that cannot be told. */
  outcome: Fit["outcome"];
  /** Where in the payload (JSON Pointer; `*` stands for any element or key), and what; null where all is well. */
  pointer: string | null;
  words: string | null;
}

interface End {
  kind: ContractKind;
  name: string;
  part: "payload" | "tags";
  gives: boolean;
  schema: JsonSchema | null;
  party: Party;
}

const GIVES: Record<UseDirection, { kind: ContractKind; gives: boolean }> = {
  pop: { kind: "stream", gives: false },
  submit: { kind: "queue", gives: true },
  put: { kind: "pool", gives: true },
  claim: { kind: "pool", gives: false },
  publish: { kind: "topic", gives: true },
  subscribe: { kind: "topic", gives: false },
};

/** All pairs of who gives and who takes, by kind and name. `manifests`: of those workers that are to count. */
export function checkContracts(manifests: Readonly<Record<string, readonly Manifest[]>>): ContractEdge[] {
  const ends = partiesOf(manifests).flatMap(endsOf);
  const byContract = new Map<string, End[]>();
  for (const end of ends) {
    const key = `${end.kind} ${end.name} ${end.part}`;
    byContract.set(key, [...(byContract.get(key) ?? []), end]);
  }
  return [...byContract.entries()]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, all]) => {
      const takers = all.filter(({ gives }) => !gives);
      return all.filter(({ gives }) => gives).flatMap((giver) => takers.map((taker) => edge(giver, taker)));
    });
}

/** Manifests of workers that are not offline. */
export function liveManifests(
  manifests: Readonly<Record<string, Manifest[]>>,
  workers: readonly Pick<WorkerRecord, "id" | "draining" | "expiresAt">[],
  now: number,
): Record<string, Manifest[]> {
  const live = workers.filter((worker) => workerState(worker, now) !== "offline");
  return Object.fromEntries(live.map(({ id }) => [id, manifests[id] ?? []]));
}

/** In words, as in `stream "x" from a to b: /n is given as a text, but taken as a number`. */
export function edgeWords({ kind, name, part, giver, taker, pointer, words }: ContractEdge): string {
  const about = part === "tags" ? "tag " : "";
  const where = pointer === null || pointer === "" ? (part === "tags" ? "what" : "the payload") : pointer;
  return `${kind} "${name}" from ${giver.automation}@${short(giver)} to ${taker.automation}@${short(taker)}: ${about}${where} ${words ?? "fits"}`;
}

function short({ version }: Party): string {
  return version.slice(0, 8);
}

function partiesOf(
  manifests: Readonly<Record<string, readonly Manifest[]>>,
): { party: Party; manifest: Manifest }[] {
  const found = new Map<string, { party: Party; manifest: Manifest }>();
  for (const [workerId, list] of Object.entries(manifests).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    for (const manifest of list) {
      const key = `${manifest.name} ${manifest.version}`;
      const known = found.get(key);
      if (known === undefined) {
        const party = { automation: manifest.name, version: manifest.version, workers: [workerId] };
        found.set(key, { party, manifest });
      } else known.party.workers.push(workerId);
    }
  return [...found.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
}

function endsOf({ party, manifest }: { party: Party; manifest: Manifest }): End[] {
  const ends: End[] = [];
  const { output, tasks } = manifest;
  if (output !== null)
    ends.push({
      kind: "stream",
      name: output.stream,
      part: "payload",
      gives: true,
      schema: output.schema,
      party,
    });
  if (tasks !== null)
    ends.push({
      kind: "queue",
      name: tasks.queue,
      part: "payload",
      gives: false,
      schema: tasks.schema,
      party,
    });
  for (const [direction, used] of Object.entries(manifest.uses) as [UseDirection, readonly ContractUse[]][]) {
    const { kind, gives } = GIVES[direction];
    for (const use of used.filter((one) => one.kind === kind)) {
      ends.push({ kind, name: use.name, part: "payload", gives, schema: use.schema, party });
      if (use.pool !== undefined)
        ends.push({ kind, name: use.name, part: "tags", gives, schema: use.pool.tagsSchema, party });
    }
  }
  return ends;
}

function edge(giver: End, taker: End): ContractEdge {
  const fit = fitOf(giver.schema, taker.schema);
  const { kind, name, part } = giver;
  return {
    kind,
    name,
    part,
    giver: giver.party,
    taker: taker.party,
    outcome: fit.outcome,
    pointer: fit.outcome === "ok" ? null : fit.pointer,
    words: fit.outcome === "ok" ? null : fit.words,
  };
}

function fitOf(given: JsonSchema | null, taken: JsonSchema | null): Fit {
  if (taken === null) return { outcome: "ok" };
  if (given === null) return { outcome: "unknown", pointer: "", words: "is given without a schema" };
  return schemaFit(given, taken);
}
