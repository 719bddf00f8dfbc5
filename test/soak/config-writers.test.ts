// Long (`npm run soak`): fifty writers of one config at once, a hundred times, by REST. A short form on the store itself runs in `npm test`
// (test/config-push.test.ts).
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { isFleetError } from "../../src/errors.ts";
import { createMaster } from "../../src/master/create-master.ts";
import { makeProject, startFleet } from "../support/cli.ts";
import { measured } from "../support/heal-fleet.ts";
import { PLACES } from "../support/places.ts";

const WRITERS = 50;
const ROUNDS = 100;
const SLOTS = 4;
const TOKEN = "a-token-for-this-test-alone";

const LIVE = `
import { defineContinuous } from "fleet-framework";
import { z } from "zod";
export default defineContinuous("live", {
  config: z.object({ n: z.number().default(0), who: z.string().default("nobody") }),
  async onConfig() {},
  async runSlot(ctx) { for await (const _ of ctx.loop({ everySeconds: 0.05 })); },
});`;

const CONFIG = `
import { defineConfig } from "fleet-framework";
export default defineConfig({ automations: ["./live.auto.ts"], deploy: { live: { slots: ${SLOTS} } } });`;

describe.each(PLACES)("on $name", ({ name, at }) => {
  it("of fifty writers at once one wins each round, the others get 409, and every worker ends on the last", async () => {
    const cwd = makeProject({ "fleet.config.ts": CONFIG, "live.auto.ts": LIVE });
    const place = at(cwd);
    const master = await createMaster({
      store: place.url,
      namespace: place.namespace,
      token: TOKEN,
      port: 0,
    });
    onTestFinished(() => master.close());
    for (const id of ["w1", "w2"]) {
      const env = { FLEET_TIMINGS: JSON.stringify({ beatMs: 200, leaseMs: 4000 }) };
      const worker = startFleet(["worker", ...place.flags, "--id", id], { cwd, env });
      onTestFinished(async () => {
        worker.signal("SIGTERM");
        await worker.ended;
      });
    }
    const client = createClient({ url: master.url, token: TOKEN });
    const slots = async () => (await client.getAutomation({ name: "live" })).slot_list;
    const running = async (generation: number) =>
      vi.waitFor(
        async () => {
          const found = await slots();
          expect(found.map((slot) => [slot.state, slot.generation])).toEqual(
            Array.from({ length: SLOTS }, () => ["running", generation]),
          );
          return found;
        },
        { timeout: 30_000, interval: 50 },
      );
    const before = await running(1);
    expect(new Set(before.map(({ worker }) => worker)).size).toBe(2);

    const seen = { won: 0, conflicts: 0, other: [] as unknown[] };
    for (let round = 0; round < ROUNDS; round++) {
      const { generation } = await client.getAutomation({ name: "live" });
      await Promise.all(
        Array.from({ length: WRITERS }, (_, i) =>
          client
            .patchConfig({ name: "live", body: { n: round, who: `w${i}` }, ifMatch: `"${generation}"` })
            .then(
              () => void seen.won++,
              (error: unknown) =>
                isFleetError(error, "FLEET_CONFLICT") ? void seen.conflicts++ : void seen.other.push(error),
            ),
        ),
      );
    }
    expect(seen).toEqual({ won: ROUNDS, conflicts: ROUNDS * (WRITERS - 1), other: [] });
    const start = performance.now();
    const after = await running(1 + ROUNDS);
    measured(
      `the last of ${ROUNDS} configs in all slots, ${name}`,
      `${Math.round(performance.now() - start)} ms`,
    );
    expect(after.map(({ restarts, pid }) => [restarts, pid])).toEqual(
      before.map(({ restarts, pid }) => [restarts, pid]),
    );
    const { items } = await client.configHistory({ name: "live", query: { limit: 1 } });
    expect((await client.getAutomation({ name: "live" })).config).toEqual(items[0]?.config);
  }, 300_000);
});
