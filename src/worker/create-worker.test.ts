import { expect, it } from "vitest";
import { z } from "zod";
import { defineContinuous } from "../automation/definition.ts";
import { createWorker, type CreateWorkerOptions } from "./create-worker.ts";

const pinger = defineContinuous("url-pinger", {
  config: z.object({ url: z.string(), every: z.number().default(1) }),
  async runSlot(ctx) {
    for await (const _ of ctx.loop({ everySeconds: 1 }));
  },
});
const good = { store: "sqlite::memory:", automations: [pinger] };

it.each<[what: string, given: unknown, says: string]>([
  ["nothing", undefined, "createWorker: store is missing"],
  ["no store", { automations: [] }, "createWorker: store is missing"],
  ["no automations", { store: "sqlite::memory:" }, "createWorker: automations is missing"],
  ["an unknown option", { ...good, capcity: 3 }, 'unknown option "capcity"; did you mean "capacity"?'],
  ["a capacity below zero", { ...good, capacity: -5 }, "createWorker: capacity must be at least 1, got -5"],
  ["half a slot", { ...good, capacity: 0.5 }, "createWorker: capacity must be a whole number, got 0.5"],
  ["labels that are no values", { ...good, labels: { gpu: {} } }, "createWorker: labels.gpu must be a text"],
  ["a list of labels", { ...good, labels: ["gpu"] }, "createWorker: labels must be an object, for example"],
  ["half a log", { ...good, log: { info() {} } }, "createWorker: log must be an object with the functions"],
  ["one automation", { ...good, automations: pinger }, "createWorker: automations must be an array"],
  ["no definition", { ...good, automations: [{ name: "x" }] }, "createWorker: automations must be an array"],
  [
    "times that do not go together",
    { ...good, timings: { leaseMs: 1000 } },
    "createWorker: timings: leaseMs must be at least three beats",
  ],
  [
    "an automation that is not there",
    { ...good, deploy: { "url-pingr": { slots: 1 } } },
    'createWorker: deploy: there is no automation "url-pingr"; did you mean "url-pinger"?',
  ],
  [
    "slots below zero",
    { ...good, deploy: { "url-pinger": { slots: -1 } } },
    "createWorker: deploy.url-pinger: slots must be at least 0, got -1",
  ],
  [
    "an unknown part",
    { ...good, deploy: { "url-pinger": { slot: 1 } } },
    'createWorker: deploy.url-pinger: unknown option "slot"; did you mean "slots"?',
  ],
  [
    "a config that does not fit",
    { ...good, deploy: { "url-pinger": { config: { url: 3 } } } },
    "createWorker: deploy: url-pinger: config: url: ",
  ],
])("refuses %s before it connects", async (_, given, says) => {
  const starting = createWorker(given as CreateWorkerOptions);
  await expect(starting).rejects.toMatchObject({ code: "FLEET_OPTION_INVALID" });
  await expect(starting).rejects.toThrow(says);
});

it("names what is wrong with names", async () => {
  const { code } = (await createWorker({ ...good, id: "Ö" }).catch((error: unknown) => error)) as {
    code: string;
  };
  expect(code).toBe("FLEET_NAME_INVALID");
  await expect(createWorker({ ...good, automations: [pinger, pinger] })).rejects.toMatchObject({
    code: "FLEET_DEFINITION_INVALID",
  });
});

it("starts with options that fit, and drains", async () => {
  const worker = await createWorker({
    ...good,
    capacity: 2,
    labels: { region: "eu", gpu: true },
    deploy: { "url-pinger": { slots: 1, config: { url: "http://localhost" } } },
  });
  expect(await worker.drain()).toEqual({ forced: false });
});
