// Short (`npm test`): several workers with one slot each, recycled on request: they wait for each other, on both stores.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { makeProject, runFleet, startFleet } from "./support/cli.ts";
import { openPlace, placesFor, runningSlots, slotStatus } from "./support/places.ts";

vi.setConfig({ testTimeout: 90_000 });

const TIMINGS = { beatMs: 200, leaseMs: 4000, backoffBaseMs: 100, backoffCapMs: 200 };
const env = { FLEET_TIMINGS: JSON.stringify(TIMINGS) };

/** Each run writes when it begins and when it is down, before it goes on; it takes its time to end. */
const STEADY = `
import { appendFileSync } from "node:fs";
import { defineContinuous } from "fleet-framework";
const ledger = process.cwd() + "/ledger";
const say = (...words) => appendFileSync(ledger, words.join(" ") + "\\n");
export default defineContinuous("steady", {
  async runSlot(ctx) {
    say("begin", ctx.slotId, ctx.worker);
    for await (const _ of ctx.loop({ everySeconds: 0.05 }));
    // A run elsewhere says that it has begun a moment after its worker knows: on a busy machine not at once.
    await new Promise((resolve) => setTimeout(resolve, 150));
    say("end", ctx.slotId, ctx.worker);
    await new Promise((resolve) => setTimeout(resolve, 150));
  },
});`;
const config = (slots: number) => `
import { defineConfig } from "fleet-framework";
export default defineConfig({ automations: ["./*.auto.ts"], deploy: { steady: { slots: ${slots} } } });`;

/** How many slots ran after each line of the ledger: lines stand in the order in which they were written, by all processes. */
function levels(ledger: string): number[] {
  let running = 0;
  return ledger
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (running += line.startsWith("begin") ? 1 : -1));
}

describe.each(placesFor("Redis"))("on $name", ({ at }) => {
  const setUp = async (workers: number) => {
    const cwd = makeProject({ "fleet.config.ts": config(workers), "a.auto.ts": STEADY });
    const place = at(cwd);
    const store = await openPlace(place);
    const ledger = join(cwd, "ledger");
    writeFileSync(ledger, "");
    const running = Array.from({ length: workers }, (_, i) =>
      startFleet(["worker", "--id", `w${i}`, "--capacity", "1", ...place.flags], { cwd, env }),
    );
    await vi.waitFor(
      async () => {
        const owners = [...(await runningSlots(store)).values()].flat();
        expect(owners.toSorted()).toEqual(running.map((_, i) => `w${i}`));
      },
      { timeout: 30_000, interval: 100 },
    );
    const recycle = () =>
      runFleet(["recycle", "steady", "--wait", "40", ...place.flags], { cwd }).then((result) => {
        expect(result).toMatchObject({ code: 0, stderr: "" });
      });
    const close = async () => {
      await store.close();
      for (const worker of running) worker.signal("SIGTERM");
      expect(await Promise.all(running.map(({ ended }) => ended))).toEqual(running.map(() => 0));
    };
    return { store, running, recycle, close, ledger: () => readFileSync(ledger, "utf8") };
  };

  test("two workers with one slot each are never both down", async () => {
    const { recycle, close, ledger } = await setUp(2);
    for (let round = 1; round <= 3; round++) {
      const before = ledger().length;
      await recycle();
      const lines = ledger().slice(before);
      expect(lines.match(/^end/gm)).toHaveLength(2);
      expect(Math.min(...levels(ledger()).slice(-4))).toBe(1);
    }
    await close();
  });

  test("half of four workers move at the same time, and a turn of one that was killed comes free", async () => {
    const { store, running, recycle, close, ledger } = await setUp(4);
    // Somebody who took a turn and died: until it runs out, one of two is left.
    const dead = { automation: "steady", holder: "dead", most: 2, ttlMs: 3000 };
    expect(await store.registry.takeTurn(dead)).toBe("taken");
    const before = levels(ledger()).length;
    await recycle();
    const seen = levels(ledger()).slice(before);
    expect(seen).toHaveLength(8);
    expect(Math.min(...seen)).toBeGreaterThanOrEqual(2);
    for (let slot = 0; slot < running.length; slot++)
      expect(await slotStatus(store, "steady", slot)).toMatchObject({ state: "running", restarts: 0 });
    await close();
  });
});
