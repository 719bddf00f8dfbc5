import { NotJson, type JsonSchema, type Schema } from "./standard.ts";

interface ArkType {
  in: { toJsonSchema(options?: { dialect?: string | null; fallback?: unknown }): Record<string, unknown> };
}

/**
 * JSON Schema of an arktype's input. Its own `~standard.jsonSchema` turns what JSON lacks into `{}` silently; without a
 * fallback, `toJsonSchema` throws instead, which is what a contract needs.
 */
export function arktypeInput(schema: Schema): JsonSchema {
  try {
    return (schema as unknown as ArkType).in.toJsonSchema();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new NotJson(
      message.split("\n")[0] ?? message,
      'use "string.date.iso.parse" for dates, "string.integer.parse" or a text for big integers',
    );
  }
}
