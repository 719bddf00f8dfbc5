import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineContinuous } from "../automation/definition.ts";
import { defineBatch } from "../automation/definition-batch.ts";
import { manifestOf } from "../automation/manifest.ts";
import { definePool } from "../contracts/pool.ts";
import { defineQueue } from "../contracts/queue.ts";
import { defineStream } from "../contracts/stream.ts";
import { defineTopic } from "../contracts/topic.ts";
import { entryTemplate } from "../protocol/envelope.ts";
import type { Manifest } from "../protocol/manifest.ts";
import type { WorkerRecord } from "../protocol/status.ts";
import type { Direction, TopologyEdge, User } from "../protocol/topology.ts";
import type { EdgeRecord } from "../store/edge-store.ts";
import { openStore } from "../store/open.ts";
import { readTopology } from "./read-topology.ts";
import { EDGE_AGED_OUT_MS, topology, type TopologyInput } from "./topology.ts";

const NOW = 1_781_234_567_890;
const HARVESTER = defineQueue("harvester", z.string());
const SESSIONS = definePool("sessions", {
  payload: z.string(),
  refill: { below: 1, submit: HARVESTER, payload: () => "" },
});
const PAGES = defineStream("fetcher", z.string());
const STATS = defineTopic("shop.stats", z.number());

const fetcher = defineContinuous("fetcher", {
  output: PAGES,
  uses: { claim: [SESSIONS], subscribe: [{ kind: "topic", name: "shop.*" }] },
  runSlot: () => Promise.resolve(),
});
const harvester = defineBatch("harvester", {
  tasks: HARVESTER,
  uses: { put: [SESSIONS], publish: [STATS], subscribe: [{ kind: "topic", name: "fleet.slot.*" }] },
  runOne: () => null,
});
const FETCHER = manifestOf(fetcher, "1");
const HARVEST = manifestOf(harvester, "1");

function worker(id: string, more: Partial<WorkerRecord> = {}): WorkerRecord {
  return {
    id,
    incarnation: id,
    host: "h",
    pid: 1,
    version: "1",
    startedAt: 0,
    capacity: 9,
    labels: {},
    automations: [],
    draining: false,
    generation: 1,
    lastSeenAt: NOW,
    expiresAt: NOW + 1000,
    slots: [],
    ...more,
  };
}

function seen(
  from: User | string,
  direction: Direction,
  name: string,
  more: Partial<EdgeRecord> = {},
): EdgeRecord {
  const user: User = typeof from === "string" ? { kind: "automation", name: from } : from;
  return {
    from: user,
    direction,
    name,
    count: 5,
    firstSeenAt: NOW - 9000,
    lastSeenAt: NOW - 10,
    perMinute: 2,
    ...more,
  };
}

const graph = (given: Partial<TopologyInput> = {}) =>
  topology({
    view: { now: NOW, workers: [worker("w")], desired: {} },
    manifests: { w: [FETCHER, HARVEST] },
    observed: [],
    names: { stream: [], queue: [], pool: [] },
    figures: { stream: new Map(), queue: new Map(), pool: new Map() },
    ...given,
  });
const arrow = ({ from, to, direction }: TopologyEdge) => `${from} -${direction}-> ${to}`;
const arrows = (given?: Partial<TopologyInput>) => graph(given).edges.map(arrow);

const DECLARED = [
  "automation:fetcher -emit-> stream:fetcher",
  "automation:harvester -put-> pool:sessions",
  "automation:harvester -publish-> topic:shop.stats",
  "pool:sessions -claim-> automation:fetcher",
  "pool:sessions -refill-> queue:harvester",
  "queue:harvester -run-> automation:harvester",
  "topic:shop.* -subscribe-> automation:fetcher",
  "topic:shop.stats -match-> topic:shop.*",
];

describe("edges", () => {
  it("point the way that data goes, from what is declared, in a fixed order", () => {
    const { edges } = graph();
    expect(edges.map(arrow)).toEqual(DECLARED);
    expect(edges.every(({ declared, observed }) => declared && observed === null)).toBe(true);
    expect(arrows({ manifests: { w: [HARVEST, FETCHER] } })).toEqual(DECLARED);
  });

  it("join what is declared with what was observed", () => {
    const outside: User = { kind: "external", name: "a script" };
    const { edges } = graph({
      observed: [
        seen("fetcher", "emit", "fetcher"),
        seen("fetcher", "pop", "other"),
        seen(outside, "submit", "harvester"),
        seen({ kind: "pool", name: "sessions" }, "refill", "harvester", { count: 0, perMinute: 0 }),
      ],
    });
    const told = new Map(edges.map((edge) => [arrow(edge), edge]));
    expect([...told.keys()]).toEqual(
      [
        ...DECLARED,
        "external:a script -submit-> queue:harvester",
        "stream:other -pop-> automation:fetcher",
      ].toSorted((a, b) => (edgeKey(a) < edgeKey(b) ? -1 : 1)),
    );
    const observed = { count: 5, first_seen_at: NOW - 9000, last_seen_at: NOW - 10, per_minute: 2 };
    expect(told.get("automation:fetcher -emit-> stream:fetcher")).toMatchObject({ declared: true, observed });
    expect(told.get("stream:other -pop-> automation:fetcher")).toMatchObject({ declared: false, observed });
    expect(told.get("pool:sessions -refill-> queue:harvester")).toMatchObject({
      declared: true,
      observed: { count: 0 },
    });
  });

  it("are gone a day after they were seen last, unless they are declared", () => {
    const at = (ago: number) => ({ lastSeenAt: NOW - ago });
    const old = graph({
      observed: [
        seen("fetcher", "pop", "x", at(EDGE_AGED_OUT_MS)),
        seen("fetcher", "pop", "y", at(EDGE_AGED_OUT_MS - 1)),
        seen("fetcher", "emit", "fetcher", at(EDGE_AGED_OUT_MS)),
      ],
    });
    expect(old.nodes.map(({ id }) => id)).not.toContain("stream:x");
    expect(old.edges.map(arrow)).toContain("stream:y -pop-> automation:fetcher");
    expect(old.edges.find(({ direction }) => direction === "emit")).toMatchObject({
      declared: true,
      observed: null,
    });
  });

  it("of the framework's topics are there only when asked for", () => {
    const observed = [seen("fetcher", "subscribe", "fleet.worker.online"), seen("fetcher", "subscribe", "*")];
    const about = (given: Partial<TopologyInput>) =>
      arrows({ ...given, observed }).filter(
        (text) => text.includes("topic:fleet.") || text.includes("topic:*"),
      );
    expect(about({})).toEqual([
      "topic:* -subscribe-> automation:fetcher",
      "topic:shop.stats -match-> topic:*",
    ]);
    expect(about({ framework: true })).toEqual([
      "topic:* -subscribe-> automation:fetcher",
      "topic:fleet.slot.* -subscribe-> automation:harvester",
      "topic:fleet.worker.online -subscribe-> automation:fetcher",
      "topic:fleet.worker.online -match-> topic:*",
      "topic:shop.stats -match-> topic:*",
    ]);
  });

  it("of a direction that only a newer version knows are left out", () => {
    const newer = {
      ...FETCHER,
      uses: { teleport: [{ kind: "stream", name: "x", schema: null }] },
    } as Manifest;
    const observed = [
      seen("fetcher", "teleport" as Direction, "x"),
      seen("fetcher", "constructor" as Direction, "x"),
    ];
    expect(arrows({ manifests: { w: [newer] }, observed })).toEqual([
      "automation:fetcher -emit-> stream:fetcher",
    ]);
  });

  it("come from live workers, and from others only where no live one has the automation", () => {
    const gone = worker("gone", { expiresAt: NOW });
    const old = { ...FETCHER, uses: { pop: [{ kind: "stream", name: "old", schema: null }] } };
    const view = { now: NOW, workers: [worker("w"), gone], desired: {} };
    const both = arrows({ view, manifests: { w: [FETCHER], gone: [old, HARVEST] } });
    expect(both).toEqual(DECLARED);
    expect(arrows({ view, manifests: { gone: [old] } })).toContain("stream:old -pop-> automation:fetcher");
    // Two versions that run side by side: what any of them uses.
    const beside = arrows({
      view: { now: NOW, workers: [worker("w"), worker("v")], desired: {} },
      manifests: { w: [FETCHER], v: [old] },
    });
    expect(beside).toEqual(expect.arrayContaining(["stream:old -pop-> automation:fetcher"]));
    expect(beside).toEqual(expect.arrayContaining(["pool:sessions -claim-> automation:fetcher"]));
  });
});

/** What edges are ordered by, of its short form. */
function edgeKey(text: string): string {
  const [, from = "", direction = "", to = ""] = /^(.*) -(\w+)-> (.*)$/.exec(text) ?? [];
  return [from, to, direction].join("\u0000");
}

describe("nodes", () => {
  it("are automations with their slots, and all that is used or declared", () => {
    const slot = (slotId: number, state: "running" | "backing-off") =>
      ({ automation: "fetcher", slotId, state }) as WorkerRecord["slots"][number];
    const desired = {
      slots: 3,
      config: {},
      paused: false,
      generation: 1,
      deployed: {},
      changedBy: { slots: "", config: "" },
    };
    const { nodes } = graph({
      view: {
        now: NOW,
        // One slot that moves may be reported by two.
        workers: [
          worker("w", { slots: [slot(0, "running"), slot(1, "running"), slot(2, "backing-off")] }),
          worker("v", { slots: [slot(1, "running")] }),
          worker("gone", { expiresAt: NOW, slots: [slot(2, "running")] }),
        ],
        desired: { fetcher: desired, unknown: { ...desired, paused: true } },
      },
      names: { stream: ["idle", "fetcher"], queue: ["harvester"], pool: [] },
    });
    expect(nodes.map(({ id }) => id)).toEqual([
      "automation:fetcher",
      "automation:harvester",
      "automation:unknown",
      "stream:fetcher",
      "stream:idle",
      "queue:harvester",
      "pool:sessions",
      "topic:shop.*",
      "topic:shop.stats",
    ]);
    expect(nodes.slice(0, 3)).toEqual([
      {
        id: "automation:fetcher",
        kind: "automation",
        name: "fetcher",
        type: "continuous",
        slots: 3,
        paused: false,
        running: 2,
      },
      {
        id: "automation:harvester",
        kind: "automation",
        name: "harvester",
        type: "batch",
        slots: null,
        paused: false,
        running: 0,
      },
      {
        id: "automation:unknown",
        kind: "automation",
        name: "unknown",
        type: null,
        slots: 3,
        paused: true,
        running: 0,
      },
    ]);
  });

  it("tell how much goes in and out, by who uses them", () => {
    const { nodes } = graph({
      observed: [
        seen("fetcher", "emit", "fetcher", { perMinute: 1.5 }),
        seen({ kind: "external", name: "s" }, "push", "fetcher", { perMinute: 0.1 }),
        seen("a", "pop", "fetcher", { perMinute: 7 }),
        seen("b", "pop", "fetcher", { perMinute: 8.25 }),
        seen({ kind: "pool", name: "sessions" }, "refill", "harvester", { perMinute: 3 }),
        seen("harvester", "put", "sessions", { perMinute: 4 }),
        seen("harvester", "publish", "shop.stats", { perMinute: 6 }),
      ],
    });
    const rates = Object.fromEntries(
      nodes.map((node) => [
        node.id,
        "in_per_minute" in node ? [node.in_per_minute, node.out_per_minute] : null,
      ]),
    );
    expect(rates).toMatchObject({
      "stream:fetcher": [1.6, 15.25],
      "queue:harvester": [3, 0],
      "pool:sessions": [4, 0],
      "topic:shop.stats": [6, 0],
      "topic:shop.*": [0, 0],
      "automation:fetcher": null,
    });
  });
});

describe("reading the store", () => {
  it("tells depth, oldest age and totals of what is there, and looks into no more than it may", async () => {
    let now = NOW;
    const store = await openStore("sqlite::memory:", { frozenNow: () => now });
    const bounds = { maxLength: 100, ttlMs: 3_600_000, maxPayloadBytes: 1000 };
    for (const stream of ["a", "b", "c"]) await store.streams.declare({ stream, bounds, as: "owner" });
    const entries = ["1", "2", "3"].map((id) => entryTemplate(id, 0, "1"));
    await store.streams.push({ stream: "c", entries, op: { producer: "p", seq: 1 } });
    await store.streams.pop({ stream: "c", n: 1 });
    now += 2500;
    await store.edges.observe({
      from: { kind: "automation", name: "x" },
      edges: [{ direction: "pop", name: "c", count: 1 }],
    });
    const whole = await readTopology(store);
    expect(whole).toMatchObject({ now, without_figures: 0 });
    expect(whole.nodes.find(({ id }) => id === "stream:c")).toEqual({
      id: "stream:c",
      kind: "stream",
      name: "c",
      in_per_minute: 0,
      out_per_minute: 1,
      figures: { depth: 2, oldest_seconds: 2.5, pushed: 3, popped: 1, lost: 0 },
    });
    const few = await readTopology(store, { mostLooks: 1 });
    expect(few.without_figures).toBe(2);
    const looked = few.nodes.flatMap((node) => ("figures" in node && node.figures !== null ? [node.id] : []));
    // What is in use comes first.
    expect(looked).toEqual(["stream:c"]);
    await store.close();
  });
});
