import { expect, test } from "vitest";
import { duration, renderTable } from "./table.ts";

test("columns are as wide as their widest cell", () => {
  const rows = [
    { name: "a", n: 5 },
    { name: "longer", n: 1000 },
  ];
  const text = renderTable(rows, [
    { title: "NAME", text: ({ name }) => name },
    { title: "N", align: "right", text: ({ n }) => String(n) },
  ]);
  expect(text.split("\n")).toEqual(["NAME       N", "a          5", "longer  1000"]);
});

test("a cell cannot break out of its line", () => {
  const text = renderTable([{ x: "a\nb\u001b[2J" }], [{ title: "X", text: ({ x }) => x }]);
  expect(text.split("\n")).toHaveLength(2);
  expect(text).not.toContain("\u001b");
});

test.each([
  [-5, "0 ms"],
  [850, "850 ms"],
  [12_999, "12 s"],
  [200_000, "3 m 20 s"],
  [18_120_000, "5 h 2 m"],
  [273_600_000, "3 d 4 h"],
])("%i ms reads %s", (ms, text) => {
  expect(duration(ms)).toBe(text);
});
