import { expect, it } from "vitest";
import { worker } from "../store/conformance/workers.ts";
import { drainsAlready } from "./drain-words.ts";

const NOW = 1_781_234_567_890;

it("says why a request has changed nothing of a worker that drains already, and what would", () => {
  const drain = { since: NOW - 10_000, until: NOW + 20_000, by: null, forced: false };
  const record = {
    ...worker("w", 1, { draining: true }),
    generation: 1,
    lastSeenAt: NOW,
    expiresAt: NOW,
    slots: [],
  };
  const says = (deadline: number | undefined, more: object) =>
    drainsAlready({ ...record, ...more }, deadline, NOW);
  expect(says(undefined, { drain })).toBe(
    "w drains already (20 s left); nothing was changed. --deadline gives it another deadline.",
  );
  expect(says(30, { drain })).toBe(
    "w drains already, with that very deadline (20 s left); nothing was changed. Another number moves it, counted from then on.",
  );
  for (const deadline of [undefined, 30])
    expect(says(deadline, { drain: { ...drain, forced: true } })).toBe(
      "w drains already, and its end is being forced; nothing was changed.",
    );
  // Before it has begun, and of a version that says nothing of it.
  const wish = { drain: { by: "anna", at: NOW - 1000, incarnation: "w-1", deadlineMs: 60_000 } };
  expect(says(60, { draining: false, wish })).toContain("with that very deadline (59 s left)");
  expect(says(60, {})).toBe("w drains already, and does not say until when; nothing was changed.");
});
