// Short (`npm test`): tokens go from an issuer in one process to callers in another, and the issuer is swapped without their noticing.
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { CALLER } from "../examples/token-issuer/contracts.ts";
import { fleetOn } from "../src/automation/fleet.ts";
import { SILENT } from "../src/internal/log.ts";
import { openStore } from "../src/store/open.ts";
import { makeProject, startFleet } from "./support/cli.ts";
import { runningSlots } from "./support/places.ts";

const config = (name: string) => fileURLToPath(new URL(`../examples/token-issuer/${name}`, import.meta.url));

test("each call has a token of its own, also after another issuer took the first one's place", async () => {
  const dir = makeProject();
  const url = `sqlite:${dir}/fleet.db`;
  const start = (id: string, file: string, only: string) =>
    startFleet(["worker", "--id", id, "--config", config(file), "--only", only, "--store", url], {
      cwd: dir,
      env: { FLEET_DATA_DIR: `${dir}/${id}` },
    });
  const store = await openStore(url);
  const fleet = fleetOn(store, { log: SILENT });
  onTestFinished(() => fleet.close());
  const issuerOf = async (path: string) => (await fleet.call(CALLER, { path }, { waitSeconds: 30 })).issuer;

  const issuer = start("issuer", "fleet.config.ts", "token-issuer");
  const caller = start("caller", "fleet.config.ts", "caller");
  const issuers = await Promise.all(Array.from({ length: 20 }, (_, index) => issuerOf(`/orders/${index}`)));
  expect(issuers).toEqual(Array.from({ length: 20 }, () => "signed"));
  // A worker tells of its slots with its beat.
  const before = await vi.waitFor(() => statusOf("caller"), { timeout: 10_000, interval: 100 });

  issuer.signal("SIGTERM");
  expect(await issuer.ended).toBe(0);
  const other = start("other", "fleet.random.config.ts", "token-issuer");
  await vi.waitFor(async () => expect(await issuerOf("/orders/again")).toBe("random"), {
    timeout: 60_000,
    interval: 50,
  });
  // Not restarted, and not even touched: the same process still runs the same slots.
  expect(await statusOf("caller")).toEqual(before);
  for (const worker of [caller, other]) worker.signal("SIGTERM");
  expect([await caller.ended, await other.ended]).toEqual([0, 0]);

  async function statusOf(worker: string) {
    const { workers } = await store.registry.view();
    const slots = workers.find(({ id }) => id === worker)?.slots ?? [];
    const running = await runningSlots(store);
    expect(["caller/0", "caller/1"].map((slot) => running.get(slot))).toEqual([["caller"], ["caller"]]);
    return slots
      .filter(({ automation }) => automation === "caller")
      .map(({ slotId, pid, restarts }) => ({ slotId, pid, restarts }))
      .toSorted((a, b) => a.slotId - b.slotId);
  }
}, 120_000);
