import { expect, it } from "vitest";
import { longId, shapeOf, shortId, tagsJsonOf } from "./pool-compact.ts";
import { wireOfTags } from "./pool-wire.ts";

it.each([
  ["0190c6f2-7b1e-7c3a-9f00-0123456789ab", 23],
  ["0190C6F2-7B1E-7C3A-9F00-0123456789AB", 36],
  ["a", 1],
  ["~", 2],
  ["~~x", 4],
  // What a short id looks like, given as an id.
  [shortId("0190c6f2-7b1e-7c3a-9f00-0123456789ab"), 24],
])("the id %s comes back, from %d characters", (id, length) => {
  expect([shortId(id).length, longId(shortId(id))]).toEqual([length, id]);
});

it.each([
  [`{"site":"shop","region":"eu","tier":"paid"}`, { region: ["eu"], site: ["shop"], tier: ["paid"] }, ":102"],
  [
    `{"n":12,"b":true,"of":["a","b"],"sizes":[1,2]}`,
    { b: ["true"], n: ["12"], of: ["a", "b"], sizes: ["1", "2"] },
    ":1V0V2L3M",
  ],
  [`{"one":["x"]}`, { one: ["x"] }, ":0L"],
  [`{"é =,":"\\"ü 🚀"}`, { "é =,": [`"ü 🚀`] }, ":0"],
])("JSON that its tags tell is kept as its shape: %s", (json, tags, shape) => {
  const wire = wireOfTags(tags);
  expect(shapeOf(json, wire)).toBe(shape);
  expect(tagsJsonOf(`${shape} ${wire}`)).toBe(json);
});

it.each([
  ["{}", {}],
  ["{}", { a: ["1"] }],
  ["[]", { a: ["1"] }],
  [`{"a":1.0}`, { a: ["1"] }],
  [`{"a": "1"}`, { a: ["1"] }],
  [`{"a":["2","1"]}`, { a: ["1", "2"] }],
  [`{"a":null}`, { a: ["null"], b: ["x"] }],
  [`{"other":"1"}`, { a: ["1"] }],
  ["no JSON", { a: ["1"] }],
])("JSON that says something else is kept as it is: %s with %j", (json, tags) => {
  const kept = shapeOf(json, wireOfTags(tags));
  expect(tagsJsonOf(kept.startsWith(":") ? `${kept} ${wireOfTags(tags)}` : kept)).toBe(json);
});
