// Soak: a worker process on a Redis that is gone for a minute, and for FLEET_SOAK_OUTAGE_MINUTES (default 10).
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../src/store/open.ts";
import { outage, workerOn } from "../support/outage.ts";
import { startRedis } from "../support/redis.ts";

const MINUTES = Number(process.env["FLEET_SOAK_OUTAGE_MINUTES"] ?? 10);

test.each([
  { ms: 60_000, back: "with its data" },
  { ms: MINUTES * 60_000, back: "with its data" },
  { ms: MINUTES * 60_000, back: "empty" },
])("a store that is gone for $ms ms and back $back", async ({ ms, back }) => {
  const durable = back === "empty" ? [] : ["--appendonly", "yes", "--appendfsync", "always"];
  const server = await startRedis({ args: durable });
  onTestFinished(() => server.stop());
  const store = await openStore(server.url, { namespace: "out", deadlineSeconds: 1 });
  onTestFinished(() => store.close());
  const { worker } = await workerOn({ store, flags: ["--store", server.url, "--namespace", "out"] });
  await outage({
    name: `gone, back ${back}`,
    worker,
    store,
    ms,
    breakIt: () => server.kill(),
    bites: () => expect(store.now()).rejects.toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" }),
    mend: () => server.start(),
  });
});
