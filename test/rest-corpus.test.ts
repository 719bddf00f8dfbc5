// Short (`npm test`): one list of payloads through all doors by which a task comes in; the verdicts agree, or the take decides.
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { fleetOn } from "../src/automation/fleet.ts";
import { definePool } from "../src/contracts/pool.ts";
import { defineQueue } from "../src/contracts/queue.ts";
import { isFleetError } from "../src/errors.ts";
import { defineBatch, defineContinuous } from "../src/index.ts";
import { SILENT } from "../src/internal/log.ts";
import { makeProject, runFleet, startFleet } from "./support/cli.ts";
import { openPlace, placesFor, runningSlots } from "./support/places.ts";
import { publish, type Rest, restOn } from "./support/rest.ts";

vi.setConfig({ testTimeout: 180_000 });

/** The same schema as text, for the worker's own process. */
const SOURCE = `z.strictObject({
  from: z.number().int(),
  to: z.number().int(),
  name: z.string().min(1).max(20).optional(),
  kind: z.enum(["a", "b"]).default("a"),
  when: z.iso.datetime().transform((text) => new Date(text)).optional(),
  tags: z.array(z.string()).max(3).optional(),
  level: z.coerce.string().pipe(z.string().regex(/^l[0-9]$/)).optional(),
  even: z.number().refine((n) => n % 2 === 0, { message: "must be even" }).optional(),
  more: z.record(z.string(), z.unknown()).optional(),
}).refine(({ from, to }) => from < to, { path: ["to"], message: "must be above from" })`;
const Payload = z
  .strictObject({
    from: z.number().int(),
    to: z.number().int(),
    name: z.string().min(1).max(20).optional(),
    kind: z.enum(["a", "b"]).default("a"),
    when: z.iso
      .datetime()
      .transform((text) => new Date(text))
      .optional(),
    tags: z.array(z.string()).max(3).optional(),
    level: z.coerce
      .string()
      .pipe(z.string().regex(/^l[0-9]$/))
      .optional(),
    even: z
      .number()
      .refine((n) => n % 2 === 0, { message: "must be even" })
      .optional(),
    more: z.record(z.string(), z.unknown()).optional(),
  })
  .refine(({ from, to }) => from < to, { path: ["to"], message: "must be above from" });
const JOBS = defineQueue("jobs", { payload: Payload });
const POOL = definePool("things", { payload: Payload });

/** `fits`; `shape`: its JSON Schema refuses it, too; `beyond`: only the schema itself knows. */
type Truth = "fits" | "shape" | "beyond";
const right = { from: 1, to: 2 };
const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) });

const CORPUS: readonly (readonly [what: string, payload: unknown, truth: Truth])[] = [
  ["what is needed", right, "fits"],
  ["a default that is given", { ...right, kind: "b" }, "fits"],
  ["an option of each kind", { ...right, name: "x", tags: ["a", "b"], more: { a: [1, null, "x"] } }, "fits"],
  ["a time in its input form", { ...right, when: "2026-11-29T23:00:00Z" }, "fits"],
  ["what a coercion makes right", { ...right, level: "l3" }, "fits"],
  ["what a refinement allows", { ...right, even: 4 }, "fits"],
  ["the largest safe number", { from: 0, to: Number.MAX_SAFE_INTEGER }, "fits"],
  ["numbers below nothing", { from: -5, to: -0 }, "fits"],
  ["odd characters", { ...right, name: "ü 日本 🙂 e\u0301 \u202e" }, "fits"],
  ["half a character", { ...right, name: "\ud800" }, "fits"],
  ["control characters", { ...right, name: "a\u0000b\n" }, "fits"],
  ["an odd key", { ...right, more: { "": 1, "a/b~c": 2, constructor: 3, toString: 4 } }, "fits"],
  ["deep nesting", { ...right, more: { deep: deep(55) } }, "fits"],
  ["nothing in an array", { ...right, tags: [] }, "fits"],
  ["twenty characters", { ...right, name: "x".repeat(20) }, "fits"],
  ["another type", { from: "1", to: 2 }, "shape"],
  ["null for a number", { from: null, to: 2 }, "shape"],
  ["null for what may be left out", { ...right, name: null }, "shape"],
  ["a field too few", { from: 1 }, "shape"],
  ["nothing at all", {}, "shape"],
  ["a field too many", { ...right, extra: 1 }, "shape"],
  ["a fraction", { from: 1.5, to: 2 }, "shape"],
  ["an unknown kind", { ...right, kind: "c" }, "shape"],
  ["an empty text", { ...right, name: "" }, "shape"],
  ["twenty-one characters", { ...right, name: "x".repeat(21) }, "shape"],
  ["too many tags", { ...right, tags: ["a", "b", "c", "d"] }, "shape"],
  ["a number among tags", { ...right, tags: ["a", 1] }, "shape"],
  ["no time", { ...right, when: "yesterday" }, "shape"],
  ["a number as a whole", 7, "shape"],
  ["a text as a whole", "right", "shape"],
  ["null as a whole", null, "shape"],
  ["an array as a whole", [right], "shape"],
  ["a number beyond what is safe", { from: 1, to: 2 ** 60 }, "shape"],
  ["deeper than a payload may be", { ...right, more: { deep: deep(70) } }, "shape"],
  ["what a refinement of the whole refuses", { from: 2, to: 1 }, "beyond"],
  ["what a refinement of a field refuses", { ...right, even: 3 }, "beyond"],
  ["what a coercion does not make right", { ...right, level: "high" }, "beyond"],
];

const bodyOf = (payload: unknown) => JSON.stringify({ payload });

/** 400 where it is no body at all: nested deeper than any payload may be. */
async function byRest(rest: Rest, payload: unknown): Promise<"refused" | "full" | "structural"> {
  const { status, json } = await rest.call("POST", "/automations/jobs/tasks", bodyOf(payload));
  if (status === 201) return json["validated"] as "full";
  expect([400, 422]).toContain(status);
  return "refused";
}

async function bySchedule(rest: Rest, payload: unknown): Promise<"refused" | "taken"> {
  const body = JSON.stringify({ id: "s", every_seconds: 86_400, payload });
  const { status } = await rest.call("POST", "/automations/jobs/schedules", body);
  return status === 201 ? "taken" : "refused";
}

async function taken(work: Promise<unknown>): Promise<"refused" | "taken"> {
  try {
    await work;
    return "taken";
  } catch (error) {
    if (isFleetError(error, "FLEET_PAYLOAD_INVALID")) return "refused";
    throw error;
  }
}

describe.each(placesFor("Redis"))("on $name", ({ at }) => {
  it("comes to one verdict at all doors, with and without a live child", async () => {
    const dir = makeProject({
      "jobs.ts": `
        import { defineBatch } from "fleet-framework";
        import { z } from "zod";
        export default defineBatch("jobs", { tasks: ${SOURCE}, runOne: () => null });`,
      "fleet.config.ts": `export default { automations: ["./jobs.ts"], deploy: { jobs: { slots: 1 } } };`,
    });
    const place = at(dir);
    const store = await openPlace(place);
    onTestFinished(() => store.close());
    const fleet = fleetOn(await openPlace(place), { log: SILENT });
    onTestFinished(() => fleet.close());
    const rest = restOn(store);
    const leave = await publish(store, [defineBatch("jobs", { tasks: JOBS, runOne: () => null })]);

    const seen: object[] = [];
    const expected: object[] = [];
    const alone = new Map<string, { sdk: string; rest: string; schedule: string }>();
    for (const [what, payload] of CORPUS) {
      const sdk = await taken(fleet.submit(JOBS, payload as never));
      alone.set(what, { sdk, rest: await byRest(rest, payload), schedule: await bySchedule(rest, payload) });
    }
    for (const [what, , truth] of CORPUS) {
      // The schema itself refuses what only it knows; a JSON Schema cannot.
      const shape = truth === "shape" ? "refused" : "structural";
      seen.push({ what, ...alone.get(what) });
      expected.push({
        what,
        sdk: truth === "fits" ? "taken" : "refused",
        rest: shape,
        schedule: shape === "refused" ? "refused" : "taken",
      });
    }
    expect(seen).toEqual(expected);

    const lines = CORPUS.map(([, payload]) => JSON.stringify(payload));
    const outcomes = await Promise.all(
      // A command takes all its payloads or none, so those that are refused go by themselves: a few stand for all.
      [
        ["fits", "beyond"],
        ...CORPUS.filter(([, , truth]) => truth === "shape")
          .slice(0, 6)
          .map(([what]) => what),
      ].map(async (which) => {
        const chosen = lines.filter((_, index) => {
          const [what, , truth] = CORPUS[index] as (typeof CORPUS)[number];
          return Array.isArray(which) ? which.includes(truth) : which === what;
        });
        const { code } = await runFleet(["task", "submit", "jobs", ...chosen, ...place.flags], { cwd: dir });
        return { which, code };
      }),
    );
    for (const { which, code } of outcomes)
      expect({ which, code }).toEqual({ which, code: Array.isArray(which) ? 0 : 2 });

    // A worker takes what has come: what fits ends well, the rest is in the dead letter.
    await leave();
    startFleet(["worker", ...place.flags], { cwd: dir });
    await vi.waitFor(
      async () => {
        const counts = (await store.queues.stats({ queue: "jobs" }))?.counts;
        expect(counts).toMatchObject({ waiting: 0, active: 0, scheduled: 0 });
        expect((await runningSlots(store)).size).toBe(1);
      },
      { timeout: 90_000, interval: 100 },
    );
    const count = (truth: Truth) => CORPUS.filter((one) => one[2] === truth).length;
    const stats = await store.queues.stats({ queue: "jobs" });
    // By SDK, REST and command line; and what only the schema knows by the two that did not ask it.
    expect(stats?.counts).toMatchObject({ completed: 3 * count("fits"), failed: 2 * count("beyond") });
    expect(stats?.reasons).toEqual({ invalid: 2 * count("beyond") });

    // With a live child no door takes what does not fit.
    for (const [what, payload, truth] of CORPUS) {
      const verdict = { what, rest: await byRest(rest, payload), schedule: await bySchedule(rest, payload) };
      expect(verdict).toEqual({
        what,
        rest: truth === "fits" ? "full" : "refused",
        schedule: truth === "fits" ? "taken" : "refused",
      });
    }
  });

  it("comes to one verdict on items of a pool, and lets the claim decide what only the schema knows", async () => {
    const dir = makeProject();
    const place = at(dir);
    const store = await openPlace(place);
    onTestFinished(() => store.close());
    const fleet = fleetOn(store, { log: SILENT });
    onTestFinished(() => fleet.close());
    const rest = restOn(store);
    await publish(store, [
      defineContinuous("maker", { uses: { put: [POOL] }, runSlot: async () => undefined }),
    ]);

    const seen: object[] = [];
    for (const [what, payload] of CORPUS) {
      const { status } = await rest.call("POST", "/pools/things/items", bodyOf(payload));
      const sdk = await taken(fleet.pool(POOL).put({ payload: payload as never }));
      seen.push({ what, sdk, rest: status === 201 ? "taken" : "refused" });
    }
    const verdicts = CORPUS.map(([what, , truth]) => ({
      what,
      sdk: truth === "fits" ? "taken" : "refused",
      rest: truth === "shape" ? "refused" : "taken",
    }));
    expect(seen).toEqual(verdicts);

    const put = async (truths: readonly Truth[]) => {
      const payloads = CORPUS.filter((one) => truths.includes(one[2])).map(([, payload]) =>
        JSON.stringify(payload),
      );
      const { code } = await runFleet(["pool", "put", "things", ...payloads, ...place.flags], { cwd: dir });
      return code;
    };
    expect(await put(["fits", "beyond"])).toBe(0);
    expect(await put(["shape"])).toBe(2);

    const count = (truth: Truth) => CORPUS.filter((one) => one[2] === truth).length;
    const claimed = [];
    for (;;) {
      const lease = await fleet.pool(POOL).claim({ holdSeconds: 600 });
      if (lease === null) break;
      claimed.push(lease);
    }
    expect(claimed).toHaveLength(3 * count("fits"));
    expect(await store.pools.count({ pool: "things", where: {} })).toMatchObject({
      free: 0,
      retired: 2 * count("beyond"),
    });
  });
});
