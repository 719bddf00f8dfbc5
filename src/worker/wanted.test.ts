import { describe, expect, it } from "vitest";
import type { Program } from "../protocol/program.ts";
import type { DesiredAutomation } from "../protocol/spec.ts";
import { planFor, possibleHosts } from "./wanted.ts";

const program: Program = {
  automations: [
    {
      manifest: {
        name: "a",
        kind: "continuous",
        version: "v1",
        configSchema: null,
        output: null,
        tasks: null,
        stateSchema: null,
        uses: {},
        liveConfig: true,
      },
      module: "/m.js",
      source: "/m.ts",
      isolate: "slot",
    },
  ],
  deploy: {},
};
const desired = (change: Partial<DesiredAutomation> = {}): DesiredAutomation => ({
  slots: 3,
  config: { n: 1 },
  paused: false,
  generation: 7,
  deployed: {},
  changedBy: { slots: "deploy", config: "deploy" },
  ...change,
});
const plan = (change: Partial<Parameters<typeof planFor>[0]> = {}, state = desired()) =>
  planFor({
    workerId: "w1",
    view: { desired: { a: state }, assignments: { a: { 0: "w1", 1: "w2", 2: "w1" } } },
    program,
    held: [{ automation: "a", slotId: 0, token: "t0" }],
    draining: false,
    labels: {},
    epochs: new Map(),
    circuitOpen: () => false,
    ...change,
  });

describe("planFor", () => {
  it("wants the assigned slots whose lease is held, and claims the others", () => {
    expect(plan()).toEqual({
      claim: [{ automation: "a", slotId: 2 }],
      awaited: new Set(["a/2@v1#0.0"]),
      wanted: [
        {
          automation: "a",
          slotId: 0,
          token: "t0",
          version: "v1",
          build: "v1#0.0",
          config: { n: 1 },
          configKey: '{"n":1}',
          generation: 7,
          slotCount: 3,
          liveConfig: true,
          isolate: "slot",
          circuitOpen: false,
        },
      ],
      unwanted: new Map(),
    });
  });

  it("gives up what is assigned elsewhere, paused, scaled away, or held while it drains, and says why", () => {
    const held = [{ automation: "a", slotId: 1, token: "t1" }];
    expect(plan({ held }).unwanted).toEqual(new Map([["a/1", "scaled"]]));
    expect(plan({}, desired({ paused: true }))).toMatchObject({
      claim: [],
      wanted: [],
      unwanted: new Map([["a/0", "paused"]]),
    });
    expect(plan({}, desired({ slots: 0 }))).toMatchObject({
      claim: [],
      unwanted: new Map([["a/0", "scaled"]]),
    });
    expect(plan({ draining: true })).toMatchObject({
      claim: [],
      wanted: [],
      unwanted: new Map([["a/0", "drain"]]),
    });
  });

  it("runs nothing that it has no code for, or that nobody desires", () => {
    expect(plan({ program: { automations: [], deploy: {} } })).toMatchObject({ claim: [], wanted: [] });
    expect(plan({ view: { desired: {}, assignments: { a: { 0: "w1" } } } })).toMatchObject({
      claim: [],
      wanted: [],
    });
  });

  it("gives each slot the build that its recycles ask for, on request and by limit", () => {
    const view = {
      desired: { a: { ...desired(), recycles: 2, slotRecycles: { "0": 1 } } },
      assignments: { a: { 0: "w1" } },
    };
    const epochs = new Map([["a/0", 4]]);
    expect(plan({ view, epochs }).wanted).toMatchObject([{ build: "v1#3.4" }]);
  });

  it("marks a slot whose circuit is open for this very code", () => {
    const asked: unknown[] = [];
    const circuitOpen = (slot: unknown, code: unknown) => asked.push([slot, code]) > 0;
    expect(plan({ circuitOpen }).wanted).toMatchObject([{ circuitOpen: true }]);
    expect(asked).toEqual([
      [expect.objectContaining({ automation: "a", slotId: 0 }), { version: "v1", recycles: 0 }],
    ]);
  });
});

describe("possibleHosts", () => {
  it("names the host of every slot that there is, wherever it is assigned", () => {
    const epochs = new Map([["a/1", 2]]);
    const state = desired({ slots: 2, recycles: 1 });
    expect(possibleHosts(program, { a: state, unknown: desired() }, epochs)).toEqual(
      new Set(["a/0@v1#1.0", "a/1@v1#1.2"]),
    );
  });

  it("names none of what is paused, scaled to nothing or unknown here", () => {
    for (const state of [desired({ paused: true }), desired({ slots: 0 })])
      expect(possibleHosts(program, { a: state }, new Map())).toEqual(new Set());
    expect(possibleHosts(program, { b: desired() }, new Map())).toEqual(new Set());
  });
});
