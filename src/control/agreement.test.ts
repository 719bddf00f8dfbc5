import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { z } from "zod";
import { type Automation, defineContinuous } from "../automation/definition.ts";
import { manifestOf } from "../automation/manifest.ts";
import { defineStream } from "../contracts/stream.ts";
import { SILENT } from "../internal/log.ts";
import type { Manifest } from "../protocol/manifest.ts";
import { openStore } from "../store/open.ts";
import type { Store } from "../store/store.ts";
import { Agreement } from "./agreement.ts";

let store: Store;
let told: [topic: string, payload: Record<string, unknown>][];
let agreement: Agreement;

beforeEach(async () => {
  store = await openStore("sqlite::memory:");
  told = [];
  const events = store.events.subscribe({ pattern: "fleet.*" }, (event) => {
    const { topic, payload } = event;
    told.push([
      topic,
      (typeof payload === "string" ? JSON.parse(payload) : payload) as Record<string, unknown>,
    ]);
  });
  await events.ready;
  agreement = new Agreement({ store, source: "w1", log: SILENT });
});
afterEach(() => store.close());

const emits = (schema: z.ZodType, version: string) =>
  manifestOf(defineContinuous("pinger", { output: schema, runSlot: async () => {} }), version);
const pops = (schema: z.ZodType) =>
  manifestOf(
    defineContinuous("reader", {
      uses: { pop: [defineStream("pinger", schema)] },
      runSlot: async () => {},
    }) as Automation,
    "r",
  );

async function register(id: string, ...manifests: Manifest[]): Promise<void> {
  await store.registry.register({
    worker: {
      id,
      incarnation: `${id}-1`,
      host: "h",
      pid: 1,
      version: "0.1.0",
      startedAt: 0,
      capacity: 1,
      labels: {},
      automations: manifests.map(({ name }) => name),
      known: Object.fromEntries(manifests.map(({ name, version }) => [name, { version, labels: {} }])),
      draining: false,
    },
    manifests,
    ttlMs: 60_000,
  });
}
const look = async () => agreement.look(await store.registry.view());
const topics = () => told.map(([topic]) => topic);

it("tells a contract that breaks and a drift once, when they appear, and again when they come back", async () => {
  await register("w1", emits(z.object({ n: z.number() }), "1"), pops(z.object({ n: z.number() })));
  await look();
  await register("w2", emits(z.object({ n: z.string() }), "2"));
  await look();
  await vi.waitFor(() => expect(topics()).toEqual(["fleet.version.drift", "fleet.contract.broken"]));
  expect(told[0]?.[1]).toEqual({ automation: "pinger", versions: ["1", "2"], workers: ["w1", "w2"] });
  expect(told[1]?.[1]).toEqual({
    kind: "stream",
    name: "pinger",
    giver: "pinger",
    giverVersion: "2",
    taker: "reader",
    takerVersion: "r",
    pointer: "/n",
    reason: "is given as a text, but taken as a number",
  });

  // Nothing new: also where something else has changed.
  await look();
  await register("w3", emits(z.object({ n: z.number() }), "1"));
  await look();
  // Mended, and broken anew: only that is told.
  await register("w2", emits(z.object({ n: z.number() }), "1"));
  await look();
  await register("w2", emits(z.object({ n: z.string() }), "2"));
  await look();
  await vi.waitFor(() => expect(told).toHaveLength(4));
  expect(topics().slice(2)).toEqual(["fleet.version.drift", "fleet.contract.broken"]);
  expect(told[2]?.[1]["workers"]).toEqual(["w1", "w2", "w3"]);
});

it("reads manifests only where a worker has another version, and looks again after a failure", async () => {
  await register("w1", emits(z.number(), "1"));
  const manifests = vi.spyOn(store.registry, "manifests");
  await look();
  await register("w1", emits(z.number(), "1"));
  await look();
  expect(manifests).toHaveBeenCalledTimes(1);
  await register("w2", emits(z.string(), "2"));
  manifests.mockRejectedValueOnce(new Error("away"));
  await look();
  expect(told).toEqual([]);
  await look();
  await vi.waitFor(() => expect(topics()).toEqual(["fleet.version.drift"]));
  expect(manifests).toHaveBeenCalledTimes(3);
});
