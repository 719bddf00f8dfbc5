import { expect, it } from "vitest";
import { driftOf } from "./drift.ts";

const NOW = 10;
const worker = (
  id: string,
  versions: Record<string, string> | undefined,
  expiresAt = 11,
  draining = false,
) => ({
  id,
  draining,
  expiresAt,
  ...(versions === undefined
    ? {}
    : {
        known: Object.fromEntries(
          Object.entries(versions).map(([name, version]) => [name, { version, labels: {} }]),
        ),
      }),
});

it("names automations of which live workers have different versions, and who has which", () => {
  expect(
    driftOf(
      [
        worker("w3", { a: "2", b: "1", constructor: "1" }),
        worker("w1", { a: "1", b: "1", c: "1", constructor: "2" }),
        worker("w2", { a: "2", c: "2" }, 11, true),
        worker("gone", { b: "9" }, NOW),
        worker("old", undefined),
      ],
      NOW,
    ),
  ).toEqual([
    {
      automation: "a",
      versions: [
        { version: "1", workers: ["w1"] },
        { version: "2", workers: ["w2", "w3"] },
      ],
    },
    {
      automation: "c",
      versions: [
        { version: "1", workers: ["w1"] },
        { version: "2", workers: ["w2"] },
      ],
    },
    {
      automation: "constructor",
      versions: [
        { version: "1", workers: ["w3"] },
        { version: "2", workers: ["w1"] },
      ],
    },
  ]);
});
