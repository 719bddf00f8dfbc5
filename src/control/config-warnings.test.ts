import { expect, it } from "vitest";
import { z } from "zod";
import { inputJsonSchema } from "../contracts/schema/json-schema.ts";
import { unknownFields } from "./config-warnings.ts";

const schemaOf = (schema: z.ZodType) => inputJsonSchema("config", schema);
const PLAIN = schemaOf(z.object({ everySeconds: z.number().default(1), urls: z.array(z.string()) }));

it("names a field that the schema drops, and the one that was meant", () => {
  expect(unknownFields({ everySecond: 2, urls: [] }, [PLAIN])).toEqual([
    'the config has no field "everySecond" (did you mean "everySeconds"?), so it has no effect',
  ]);
  expect(unknownFields({ colour: "red" }, [PLAIN])).toEqual([
    'the config has no field "colour", so it has no effect',
  ]);
  expect(unknownFields({ everySeconds: 2, urls: [] }, [PLAIN])).toEqual([]);
});

it("says nothing where some version knows the field, or a schema takes any", () => {
  const next = schemaOf(z.object({ colour: z.string() }));
  expect(unknownFields({ colour: "red" }, [PLAIN, next])).toEqual([]);
  expect(unknownFields({ colour: "red" }, [schemaOf(z.looseObject({ a: z.string() }))])).toEqual([]);
  expect(unknownFields({ colour: "red" }, [schemaOf(z.record(z.string(), z.string()))])).toEqual([]);
  const either = z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]);
  expect(unknownFields({ colour: "red" }, [schemaOf(either)])).toEqual([]);
  expect(unknownFields({ colour: "red" }, [null])).toEqual([]);
  expect(unknownFields({ colour: "red" }, [])).toEqual([]);
  expect(unknownFields(null, [PLAIN])).toEqual([]);
});
