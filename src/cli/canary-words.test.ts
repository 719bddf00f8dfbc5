import { expect, test } from "vitest";
import { canaryWords, stoppedCanaryWords } from "./canary-words.ts";

const LINE = {
  share: 0.2,
  count: null,
  slots: 2,
  running: 1,
  refused: 1,
  crashes: 1,
  other_slots: 8,
  other_crashes: 0,
  since: 0,
  seconds: 120,
  generation: 7,
  by: "jo",
};

test("says how a canary fares, and why one was stopped", () => {
  expect(canaryWords(LINE)).toBe(
    "canary of 20 % of the slots for 2 m 0 s, since generation 7, by jo; slots 0 to 1: 1 of 2 run with it, 1 refused it, 1 crash; no crash in the other slots",
  );
  const alone = { ...LINE, share: null, count: 1, slots: 1, refused: 0, crashes: 0, other_slots: 0 };
  expect(canaryWords(alone)).toBe(
    "canary of 1 slot for 2 m 0 s, since generation 7, by jo; slot 0: runs with it, no crash",
  );
  expect(canaryWords({ ...alone, slots: 0 })).toContain("no slot to try it in");
  expect(stoppedCanaryWords({ at: 0, seconds: 3, generation: 8, reason: "2 crashes" })).toBe(
    "canary stopped by itself 3 s ago (generation 8): 2 crashes",
  );
});
