// Short (`npm test`): leases that the store has given to a worker and the worker does not know of. It does not wait for their end.
import { expect, onTestFinished, test, vi } from "vitest";
import { defineContinuous } from "../src/automation/definition.ts";
import { manifestOf } from "../src/automation/manifest.ts";
import { FleetError } from "../src/errors.ts";
import { SILENT } from "../src/internal/log.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { startWorker } from "../src/worker/worker.ts";

const LEASE_MS = 20_000;

test("a claim that was granted and whose answer was lost is given back and claimed anew at once", async () => {
  const real = await openStore("sqlite::memory:");
  onTestFinished(() => real.close());
  let lost = 0;
  const claimSlots: Store["registry"]["claimSlots"] = async (args) => {
    const granted = await real.registry.claimSlots(args);
    if (lost > 0 || granted.length === 0) return granted;
    lost = granted.length;
    throw new FleetError("FLEET_STORE_UNAVAILABLE", "the answer was lost", {
      retryable: true,
      outcome: "unknown",
    });
  };
  const registry = new Proxy(real.registry, {
    get: (target, name) => (name === "claimSlots" ? claimSlots : Reflect.get(target, name)),
  });
  const store = new Proxy(real, {
    get(target, name) {
      const value: unknown = name === "registry" ? registry : Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const began: number[] = [];
  const idle = defineContinuous("idle", {
    async runSlot(ctx) {
      began.push(ctx.slotId);
      for await (const _ of ctx.loop({ everySeconds: 0.1 }));
    },
  });
  const since = performance.now();
  const worker = await startWorker({
    store,
    storeUrl: "sqlite::memory:",
    program: {
      automations: [{ manifest: manifestOf(idle, "v1"), module: "", source: "test", isolate: "automation" }],
      deploy: { idle: { slots: 2 } },
    },
    log: SILENT,
    inline: new Map([["idle", idle]]),
    timings: { beatMs: 200, leaseMs: LEASE_MS },
  });
  onTestFinished(async () => void (await worker.drain({ deadlineSeconds: 2 })));
  await vi.waitFor(() => expect(began.toSorted((a, b) => a - b)).toEqual([0, 1]), {
    timeout: LEASE_MS + 10_000,
    interval: 20,
  });
  expect(lost).toBe(2);
  expect(performance.now() - since).toBeLessThan(LEASE_MS / 2);
}, 60_000);
