import * as fc from "fast-check";
import { expect, test } from "vitest";
import { entryJsonLine, entryLine } from "./entry-line.ts";

// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

test("an entry without control characters stands as it is", () => {
  const raw = '{"id":"x","slot_id":0,"ts":1e3,"payload":{"n":12345678901234567890,"text":"a \\" ä \\u0041"}}';
  expect(entryLine(raw)).toBe(raw);
  expect(entryJsonLine(raw)).toBe(raw);
});

test("what is JSON stays the same JSON, in one line that steers no terminal", () => {
  const spaces = fc.constantFrom(undefined, "\t", 2);
  const json = fc.tuple(fc.jsonValue(), fc.string({ unit: "binary" }), spaces);
  fc.assert(
    fc.property(json, ([value, text, space]) => {
      const entry = { id: "x", payload: { value, text: `\u009b31m\u007f${text}\u2028` } };
      const raw = JSON.stringify(entry, null, space);
      for (const line of [entryLine(raw), entryJsonLine(raw)]) {
        expect(line).not.toMatch(CONTROLS);
        expect(JSON.parse(line)).toEqual(JSON.parse(raw));
      }
    }),
  );
});

test("what is no JSON is a line of its own, and with --json a text", () => {
  const raw = "\u001b[2Jforged\n\u009b31m{";
  expect(entryLine(raw)).toBe("\\u001b[2Jforged\\n\\u009b31m{");
  expect(entryJsonLine(raw)).not.toMatch(CONTROLS);
  expect(JSON.parse(entryJsonLine(raw))).toBe(raw);
});
