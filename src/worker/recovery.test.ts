import { expect, test } from "vitest";
import { desired } from "../store/conformance/workers.ts";
import type { FleetView } from "../store/store.ts";
import { asKnown, behind, hasLost } from "./recovery.ts";

const KNOWN = { revision: 500, now: 10_000, desired: { a: desired(1), b: desired(7) } };
const view = (revision: number, wanted: Record<string, ReturnType<typeof desired>> = KNOWN.desired) => ({
  revision,
  desired: wanted,
  damaged: [],
});

test("a store that went on has lost nothing, however long this worker was away", () => {
  expect(hasLost(view(500), KNOWN)).toBe(false);
  expect(hasLost(view(9999, { a: desired(3), b: desired(7), c: desired(1) }), KNOWN)).toBe(false);
});

test("one that began anew has, though others have written the same again; so has one that went back", () => {
  expect(hasLost(view(10_000), KNOWN)).toBe(true);
  expect(hasLost(view(0, {}), KNOWN)).toBe(true);
  expect(hasLost(view(499), KNOWN)).toBe(true);
  expect(hasLost(view(700, { a: desired(1), b: desired(6) }), KNOWN)).toBe(true);
  // Whoever knows nothing cannot tell.
  expect(hasLost(view(500), undefined)).toBe(true);
});

test("what is not there, or older, is behind; what cannot be read is left alone", () => {
  const here = view(1, { a: desired(1), toString: desired(1) });
  expect(behind(here, KNOWN)).toEqual([["b", desired(7), 0]]);
  expect(behind(view(1, { a: desired(2), b: desired(3) }), KNOWN)).toEqual([["b", desired(7), 3]]);
  const damaged = [{ kind: "desired state", name: "b", where: "", reason: "", remedy: "" } as const];
  expect(behind({ ...here, damaged: [...damaged] }, KNOWN)).toEqual([]);
});

test("what is behind and cannot be put back is taken as it was known, and its slots stay where nobody has placed them", () => {
  const base = { workers: [], leases: [], damaged: [], leader: null } as unknown as FleetView;
  const known = {
    ...base,
    desired: { a: desired(3), b: desired(7), c: desired(2) },
    assignments: { a: { 0: "w1" }, b: { 0: "w1" }, c: { 0: "w1" } },
  };
  const read = {
    ...base,
    revision: 9,
    desired: { a: desired(4), b: desired(6) },
    assignments: { a: { 0: "w2" } },
  };
  const taken = asKnown(read, known);
  expect(taken.revision).toBe(9);
  expect({ ...taken.desired }).toEqual({ a: desired(4), b: desired(7), c: desired(2) });
  // What is there in an older form is placed, by that.
  expect({ ...taken.assignments }).toEqual({ a: { 0: "w2" }, c: { 0: "w1" } });
  expect(asKnown(read, undefined)).toBe(read);
});
