import { checkLabels } from "../contracts/labels.ts";
import { checkOptions, integer, number, oneOf, refuse, type OptionRules } from "../contracts/options.ts";
import { inputJsonSchema, isSchema } from "../contracts/schema/json-schema.ts";
import type { Schema } from "../contracts/schema/standard.ts";
import { defineStream, isStreamContract, type StreamContract } from "../contracts/stream.ts";
import { FleetError } from "../errors.ts";
import { type RecycleLimits, USE_DIRECTIONS, type UseDirection } from "../protocol/manifest.ts";

/** Marks definitions across two copies of the package. */
const BRAND = Symbol.for("fleet-framework.automation");

/** A contract or a plain topic that an automation touches beside its own. */
export type Used = { readonly kind: string; readonly name: string };

/** What automations of every kind may be given. */
export interface SharedOptions<C extends Schema, O extends Schema | StreamContract, St extends Schema> {
  /** Schema of the config; what `deploy`, the command line and the API may set. Default: any value. */
  config?: C;
  /** The stream it emits to: a contract that bears the automation's name, or a bare schema. */
  output?: O;
  /** Other contracts it touches, by direction, for the graph and the drift checks. */
  uses?: Partial<Record<UseDirection, readonly Used[]>>;
  /** Schema of `ctx.state`; default any JSON value. */
  state?: St;
  /** `"slot"` gives each slot a process of its own; default `"automation"`: one process per worker. */
  isolate?: "automation" | "slot";
  /** When its process is replaced by a fresh one. Default: only on request. */
  recycle?: RecycleLimits;
  /** Names of environment variables that its code may see; default all but Fleet's own. */
  env?: readonly string[];
  /** It runs only on workers that bear all of these labels; values are compared as text. Default: on any. */
  labels?: Readonly<Record<string, string | number | boolean>>;
}

/** Seals a definition. */
export function seal<T extends object>(definition: T): Readonly<T> {
  Object.defineProperty(definition, BRAND, { value: true });
  return Object.freeze(definition);
}

export function isSealed(value: unknown): value is object {
  return typeof value === "object" && value !== null && BRAND in value;
}

export const stuckSeconds = number({ min: 1, max: 86_400 });

export function fn(value: unknown, where: string): unknown {
  return typeof value === "function" ? value : refuse(where, "a function", value);
}

const RECYCLE: OptionRules<Required<RecycleLimits>> = {
  afterSeconds: number({ min: 1 }),
  afterIterations: integer({ min: 1 }),
  maxMemoryMb: number({ min: 16 }),
};

/** Rules of the options that every kind takes. */
export function sharedRules(
  name: string,
): OptionRules<Required<Omit<SharedOptions<Schema, Schema, Schema>, "output">> & { output: StreamContract }> {
  return {
    config: schema,
    state: schema,
    output: (value) => outputContract(name, value),
    uses: checkUses,
    isolate: oneOf(["automation", "slot"]),
    env: checkEnv,
    labels: checkLabels,
    recycle: (value, where) => checkOptions<Required<RecycleLimits>>(where, value, RECYCLE),
  };
}

function schema(value: unknown, where: string): Schema {
  inputJsonSchema(where, value);
  return value as Schema;
}

function outputContract(name: string, output: unknown): StreamContract {
  if (isStreamContract(output)) {
    if (output.name === name) return output;
    throw new FleetError(
      "FLEET_DEFINITION_INVALID",
      `automation "${name}": its output contract is named "${output.name}"; an automation owns exactly the stream of its own name: use defineStream("${name}", …)`,
    );
  }
  if (isSchema(output)) return defineStream(name, output);
  return refuse(`automation "${name}": output`, "a stream contract or a Standard Schema", output);
}

function checkUses(value: unknown, where: string): Partial<Record<UseDirection, readonly Used[]>> {
  const list = (direction: UseDirection) => (given: unknown, at: string) => {
    if (!Array.isArray(given)) return refuse(at, "an array of contracts", given);
    for (const used of given as unknown[]) {
      const { kind, name } = (used ?? {}) as Partial<Used>;
      if (typeof kind !== "string" || typeof name !== "string")
        return refuse(at, `an array of contracts, for example uses: { ${direction}: [CONTRACT] }`, used);
    }
    return given as Used[];
  };
  return checkOptions<Record<UseDirection, readonly Used[]>>(
    where,
    value,
    Object.fromEntries(
      USE_DIRECTIONS.map((direction) => [direction, list(direction)]),
    ) as unknown as OptionRules<Record<UseDirection, readonly Used[]>>,
  );
}

function checkEnv(value: unknown, where: string): readonly string[] {
  if (
    !Array.isArray(value) ||
    value.some((name) => typeof name !== "string" || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
  ) {
    return refuse(where, 'an array of names, for example ["API_KEY"]', value);
  }
  return value as string[];
}
