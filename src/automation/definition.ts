import { checkName } from "../contracts/name.ts";
import { checkOptions, notAvailable, type OptionRules } from "../contracts/options.ts";
import type { InferOutput, Schema } from "../contracts/schema/standard.ts";
import type { StreamContract } from "../contracts/stream.ts";
import { FleetError } from "../errors.ts";
import type { ContextOf, OutputOf } from "./context.ts";
import type { AnyBatch } from "./definition-batch.ts";
import { fn, isSealed, seal, type SharedOptions, sharedRules, stuckSeconds } from "./definition-options.ts";

export interface ContinuousOptions<
  C extends Schema,
  O extends Schema | StreamContract,
  St extends Schema,
> extends SharedOptions<C, O, St> {
  /** A slot without progress for so long is stopped and healed; a slot that waits on purpose is not meant. 1 to 86 400, default 300. */
  stuckSeconds?: number;
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
  readonly output: OutputOf<O>;
  readonly options: Omit<ContinuousOptions<C, O, St>, "output">;
}

/** A definition as the worker sees it, whatever its types were. */
export type AnyContinuous = {
  readonly kind: "continuous";
  readonly name: string;
  readonly output: StreamContract | undefined;
  readonly options: Omit<ContinuousOptions<Schema, Schema, Schema>, "output">;
};
/** The same, of either kind. */
export type Automation = AnyContinuous | AnyBatch;

type Options = AnyContinuous["options"] & { output: StreamContract };

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
  return seal({ kind: "continuous", name, output, options }) as unknown as ContinuousAutomation<C, O, St>;
}

export function isAutomation(value: unknown): value is Automation {
  return isSealed(value);
}

function rules(name: string): OptionRules<Required<Options>> & { schedules: unknown } {
  return {
    ...sharedRules(name),
    runSlot: (value, where) => fn(value, where) as Options["runSlot"],
    onConfig: (value, where) => fn(value, where) as NonNullable<Options["onConfig"]>,
    stuckSeconds,
    schedules: notAvailable,
  };
}
