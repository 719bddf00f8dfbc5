import type { StandardSchemaV1 } from "@standard-schema/spec";

/** Any Standard Schema validator: zod 4, arktype 2, valibot 1, … */
export type Schema<Input = unknown, Output = Input> = StandardSchemaV1<Input, Output>;
export type InferInput<S extends Schema> = StandardSchemaV1.InferInput<S>;
export type InferOutput<S extends Schema> = StandardSchemaV1.InferOutput<S>;
export type JsonSchema = { readonly [key: string]: unknown };

/** JSON Schema dialect of everything Fleet publishes. */
export const DIALECT = "draft-2020-12";

/** What an adapter throws when a schema's input cannot travel as JSON. `hint` says what to write instead. */
export class NotJson extends Error {
  readonly hint: string | undefined;
  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}

export interface StandardJson {
  input(options: { target: string; libraryOptions?: Record<string, unknown> }): Record<string, unknown>;
}

/** The `~standard.jsonSchema` of a schema that implements Standard JSON Schema. */
export function standardJson(schema: Schema): StandardJson | undefined {
  return (schema["~standard"] as { jsonSchema?: StandardJson }).jsonSchema;
}
