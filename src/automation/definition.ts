import { checkName } from "../contracts/name.ts";
import {
  checkOptions,
  integer,
  notAvailable,
  number,
  oneOf,
  refuse,
  type OptionRules,
} from "../contracts/options.ts";
import { inputJsonSchema, isSchema } from "../contracts/schema/json-schema.ts";
import type { InferOutput, Schema } from "../contracts/schema/standard.ts";
import { defineStream, isStreamContract, type StreamContract } from "../contracts/stream.ts";
import { FleetError } from "../errors.ts";
import { type RecycleLimits, USE_DIRECTIONS, type UseDirection } from "../protocol/manifest.ts";
import type { ContextOf, OutputSchema } from "./context.ts";

/** Marks definitions across two copies of the package. */
const BRAND = Symbol.for("fleet-framework.automation");

/** A contract or a plain topic that an automation touches beside its own output. */
export type Used = { readonly kind: string; readonly name: string };

export interface ContinuousOptions<C extends Schema, O extends Schema | StreamContract, St extends Schema> {
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
  /** A slot without progress for so long is stopped and healed; a slot that waits on purpose is not meant. 1 to 86 400, default 300. */
  stuckSeconds?: number;
  /** When its process is replaced by a fresh one. Default: only on request. */
  recycle?: RecycleLimits;
  /** Names of environment variables that its code may see; default all but Fleet's own. */
  env?: readonly string[];
  /** Runs one slot until `ctx.signal` aborts. Returning early is a finished run: it starts again after a back-off. */
  runSlot(ctx: ContextOf<C, O, St>): Promise<void>;
  /** Takes a new config live; without it the slot is stopped and started with the new one. */
  onConfig?(config: InferOutput<C>, ctx: ContextOf<C, O, St>): void | Promise<void>;
}

export interface ContinuousAutomation<
  C extends Schema = Schema,
  O extends Schema | StreamContract = Schema,
  St extends Schema = Schema,
> {
  readonly kind: "continuous";
  readonly name: string;
  /** Its stream contract; undefined for an automation that emits nothing. */
  readonly output: StreamContract<OutputSchema<O>>;
  readonly options: Omit<ContinuousOptions<C, O, St>, "output">;
}

/** A definition as the worker sees it, whatever its types were. */
export type Automation = {
  readonly kind: "continuous";
  readonly name: string;
  readonly output: StreamContract | undefined;
  readonly options: Omit<ContinuousOptions<Schema, Schema, Schema>, "output">;
};

type Options = Omit<ContinuousOptions<Schema, Schema, Schema>, "output" | "runSlot"> & {
  output: StreamContract;
  runSlot: Automation["options"]["runSlot"];
};

/**
 * Defines an automation that runs one endless loop per slot. Throws `FLEET_NAME_INVALID`, `FLEET_OPTION_INVALID`,
 * `FLEET_SCHEMA_INVALID`, or `FLEET_DEFINITION_INVALID` when the output contract bears another name.
 */
export function defineContinuous<
  C extends Schema = Schema,
  O extends Schema | StreamContract = Schema<never>,
  St extends Schema = Schema,
>(name: string, definition: ContinuousOptions<C, O, St>): ContinuousAutomation<C, O, St> {
  checkName("automation", name);
  const where = `automation "${name}"`;
  const { output, ...options } = checkOptions<Options>(where, definition, rules(name));
  if (options.runSlot === undefined)
    throw new FleetError("FLEET_OPTION_INVALID", `${where}: runSlot must be a function, got nothing`);
  const made = { kind: "continuous", name, output, options };
  Object.defineProperty(made, BRAND, { value: true });
  return Object.freeze(made) as unknown as ContinuousAutomation<C, O, St>;
}

export function isAutomation(value: unknown): value is Automation {
  return typeof value === "object" && value !== null && BRAND in value;
}

const RECYCLE: OptionRules<Required<RecycleLimits>> = {
  afterSeconds: number({ min: 1 }),
  afterIterations: integer({ min: 1 }),
  maxMemoryMb: number({ min: 16 }),
};

function rules(
  name: string,
): OptionRules<Options> & Record<string, (value: unknown, where: string) => unknown> {
  const schema = (value: unknown, where: string) => {
    inputJsonSchema(where, value);
    return value as Schema;
  };
  const fn = (value: unknown, where: string) =>
    typeof value === "function" ? value : refuse(where, "a function", value);
  return {
    config: schema,
    state: schema,
    output: (value) => outputContract(name, value),
    uses: checkUses,
    isolate: oneOf(["automation", "slot"]),
    env: checkEnv,
    runSlot: (value, where) => fn(value, where) as Options["runSlot"],
    onConfig: (value, where) => fn(value, where) as NonNullable<Options["onConfig"]>,
    stuckSeconds: number({ min: 1, max: 86_400 }),
    recycle: (value, where) => checkOptions<Required<RecycleLimits>>(where, value, RECYCLE),
    labels: notAvailable,
    schedules: notAvailable,
  };
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
