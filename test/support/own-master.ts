// A master in this process, for tests that speak to it over sockets of their own.
import { onTestFinished } from "vitest";
import { SILENT } from "../../src/internal/log.ts";
import { type MasterOptions, startMaster } from "../../src/master/master.ts";
import { openStore } from "../../src/store/open.ts";
import { TOKEN } from "./rest.ts";

/** On a store of its own where none is given; both end with the test. */
export async function ownMaster(options: Partial<MasterOptions> = {}) {
  const store = options.store ?? (await openStore("sqlite::memory:"));
  const master = await startMaster({
    token: TOKEN,
    host: "127.0.0.1",
    port: 0,
    leaseMs: 10_000,
    sweepMs: 60_000,
    log: SILENT,
    ...options,
    store,
  });
  onTestFinished(async () => {
    await master.close();
    await store.close();
  });
  return { store, master, port: Number(new URL(master.url).port) };
}
