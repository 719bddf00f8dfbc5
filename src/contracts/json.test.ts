import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { byteLength, checkSize, encodePayload, MAX_DEPTH } from "./json.ts";

const encode = (payload: unknown) => encodePayload("stream", payload);
const nested = (depth: number): unknown => (depth === 0 ? 1 : { in: nested(depth - 1) });

describe("encodePayload", () => {
  it("brings every JSON value back as it was", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        // `-0` is the one JSON value whose text is that of another.
        const text = encode(value);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(text).toBe(JSON.stringify(value));
      }),
    );
  });

  it.each<[unknown, string, string]>([
    [{ a: { b: NaN } }, "/a/b", "NaN has no JSON form"],
    [{ a: [1, -Infinity] }, "/a/1", "-Infinity has no JSON form"],
    [{ a: 1n }, "/a", "a bigint has no JSON form"],
    [{ a: () => 1 }, "/a", "a function has no JSON form"],
    [{ a: Symbol("s") }, "/a", "a symbol has no JSON form"],
    [{ a: new Map() }, "/a", "a Map has no JSON form"],
    [{ a: Promise.resolve(1) }, "/a", "a Promise has no JSON form; await it"],
    [{ a: new RangeError("x") }, "/a", "an Error has no JSON form"],
    [{ a: /x/ }, "/a", "a RegExp has no JSON form"],
    [{ a: new Uint8Array(2) }, "/a", "an Uint8Array has no JSON form"],
    [{ at: new Date(Number.NaN) }, "/at", "an invalid Date has no JSON form"],
    [{ list: [{ tags: new Set() }] }, "/list/0/tags", "a Set has no JSON form"],
    [{ a: [undefined] }, "/a/0", "undefined has no JSON form; use null"],
    [undefined, "", "undefined has no JSON form"],
    [{ "a/b": NaN, c: 1 }, "/a~1b", "NaN has no JSON form"],
  ])("names the field of what JSON would lose: %o", (value, pointer, message) => {
    expect(() => encode(value)).toThrow(TypeError);
    expect(() => encode(value)).toThrowError(
      expect.objectContaining({
        code: "FLEET_PAYLOAD_INVALID",
        issues: [{ pointer, message: expect.stringContaining(message) as string }],
      }),
    );
  });

  it("writes the field as people do", () => {
    expect(() => encode({ items: [{ price: NaN }] })).toThrow("stream: items.0.price: NaN has no JSON form");
    expect(() => encode({ "a/b": NaN })).toThrow("stream: a/b: NaN has no JSON form");
  });

  it("lets undefined fields and dates travel as JSON.stringify does", () => {
    expect(encode({ a: undefined, b: new Date(0), c: null })).toBe(
      '{"b":"1970-01-01T00:00:00.000Z","c":null}',
    );
  });

  it("takes objects of a class by their fields", () => {
    class Point {
      x = 1;
      inner = Object.assign(Object.create(null) as object, { y: 2 });
    }
    expect(encode([new Point()])).toBe('[{"x":1,"inner":{"y":2}}]');
    class Bad {
      n = Number.NaN;
    }
    expect(() => encode([new Bad()])).toThrow("0.n: NaN has no JSON form");
  });

  it("refuses circles and what is nested too deep", () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    expect(() => encode(circle)).toThrow(/nested deeper than 64 levels/);
    expect(() => encode(nested(MAX_DEPTH + 1))).toThrow(/nested deeper/);
    expect(encode(nested(MAX_DEPTH - 1))).toContain('{"in":1}');
  });

  it("does not follow inherited fields", () => {
    expect(encode(Object.create({ evil: NaN }))).toBe("{}");
  });
});

describe("checkSize", () => {
  it("counts bytes of UTF-8, not characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (value) => {
        const json = JSON.stringify(value);
        expect(byteLength(json, 0)).toBe(Buffer.byteLength(json));
      }),
    );
    const euros = JSON.stringify("€".repeat(10));
    expect(() => checkSize("s", euros, 32)).not.toThrow();
    expect(() => checkSize("s", euros, 31)).toThrow("s: the payload has 32 bytes, the limit is 31");
    expect(() => checkSize("s", euros, 31)).toThrowError(
      expect.objectContaining({ code: "FLEET_PAYLOAD_TOO_LARGE" }),
    );
  });
});
