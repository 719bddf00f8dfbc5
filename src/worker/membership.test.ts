import { expect, test } from "vitest";
import { SILENT } from "../internal/log.ts";
import { worker } from "../store/conformance/workers.ts";
import type { Registry, RegisterResult, Store } from "../store/store.ts";
import { Membership } from "./membership.ts";

/** A registry whose answers to `register` the test gives. */
function members() {
  const asked: { info: Parameters<Registry["register"]>[0]["worker"]; settle: (how: Answer) => void }[] = [];
  const registry = {
    register: ({ worker: info }: Parameters<Registry["register"]>[0]) =>
      new Promise<RegisterResult>((resolve, reject) => {
        asked.push({
          info,
          settle: (how) => (how === "lost" ? reject(new Error("lost")) : resolve(how)),
        });
      }),
  } as unknown as Registry;
  const member = new Membership({
    store: { registry } as Store,
    worker: worker("w"),
    program: { automations: [], deploy: {} },
    ttlMs: 1000,
    log: SILENT,
  });
  return { member, asked };
}

type Answer = RegisterResult | "lost";
const REGISTERED: RegisterResult = { outcome: "registered", generation: 1, now: 0 };
const TAKEN: RegisterResult = { outcome: "taken", by: worker("w", 2), lastSeenAt: 0 };

test.each([
  ["a drain", (member: Membership) => member.drain({ since: 0, until: 1, by: null, forced: false })],
  ["deafness", (member: Membership) => member.setDeaf("no probe came back")],
  ["another program", (member: Membership) => member.setProgram({ automations: [], deploy: {} })],
])("%s is untold until an announcement of it has succeeded", async (_, change) => {
  const { member, asked } = members();
  expect(member.untold).toBe(false);
  change(member);
  expect(member.untold).toBe(true);
  for (const answer of ["lost", TAKEN] as const) {
    const told = member.announce().catch(() => "failed");
    asked.at(-1)?.settle(answer);
    await told;
    expect(member.untold).toBe(true);
  }
  const told = member.announce();
  asked.at(-1)?.settle(REGISTERED);
  expect(await told).toBe(true);
  expect(member.untold).toBe(false);
});

test("what changes while an announcement is under way is untold after it", async () => {
  const { member, asked } = members();
  member.setDeaf("deaf");
  const first = member.announce();
  member.setDeaf(null);
  asked[0]?.settle(REGISTERED);
  await first;
  expect(asked[0]?.info.deaf).toBe("deaf");
  expect(member.untold).toBe(true);
  const second = member.announce();
  asked[1]?.settle(REGISTERED);
  await second;
  expect(asked[1]?.info.deaf).toBeNull();
  expect(member.untold).toBe(false);
  // The same again is no change.
  expect(member.setDeaf(null)).toBe(false);
  expect(member.untold).toBe(false);
});
