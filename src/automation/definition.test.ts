import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { defineStream, type StreamContract } from "../contracts/stream.ts";
import { defineBatch } from "./definition-batch.ts";
import { defineContinuous, isAutomation, type Automation, type ContinuousAutomation } from "./definition.ts";
import { manifestOf } from "./manifest.ts";

const runSlot = async () => {};
const wrong = (definition: object) => () => defineContinuous("a", definition as { runSlot(): Promise<void> });

describe("defineContinuous", () => {
  it("exposes name and output, and is frozen", () => {
    const out = defineStream("pinger", z.object({ ok: z.boolean() }));
    const made = defineContinuous("pinger", { output: out, runSlot });
    expect(made.name).toBe("pinger");
    expect(made.output).toBe(out);
    expect(Object.isFrozen(made)).toBe(true);
    expect(isAutomation(made)).toBe(true);
    expect(isAutomation({ kind: "continuous", name: "pinger" })).toBe(false);
  });

  it("makes a contract of a bare schema", () => {
    expect(defineContinuous("a", { output: z.number(), runSlot }).output).toMatchObject({
      kind: "stream",
      name: "a",
    });
    expect(defineContinuous("a", { runSlot }).output).toBeUndefined();
  });

  it("types its output as what it is: a contract, or undefined where none is declared", () => {
    const out = defineStream("a", z.object({ n: z.coerce.number() }));
    expectTypeOf(defineContinuous("a", { output: out, runSlot }).output).toEqualTypeOf<typeof out>();
    const bare = defineContinuous("a", { output: z.string(), runSlot });
    expectTypeOf(bare.output).toEqualTypeOf<StreamContract<z.ZodString>>();
    const none = defineContinuous("a", { config: z.object({ n: z.number() }), runSlot });
    expectTypeOf(none.output).toEqualTypeOf<undefined>();
    expectTypeOf(defineBatch("a", { tasks: z.string(), runOne: () => 1 }).output).toEqualTypeOf<undefined>();
    // @ts-expect-error -- there is nothing to read
    expect(() => none.output.name).toThrow(TypeError);
    // Where it is not known which, it has to be looked at.
    const some: ContinuousAutomation[] = [none, bare];
    expectTypeOf(some[0]?.output).toEqualTypeOf<StreamContract | undefined>();
  });

  it("refuses an output contract of another name", () => {
    const output = defineStream("other", z.number());
    expect(() => defineContinuous("a", { output, runSlot })).toThrowError(
      expect.objectContaining({ code: "FLEET_DEFINITION_INVALID" }),
    );
    expect(() => defineContinuous("a", { output, runSlot })).toThrow(
      'its output contract is named "other"; an automation owns exactly the stream of its own name: use defineStream("a", …)',
    );
  });

  it.each<[object, RegExp]>([
    [{}, /runSlot must be a function, got nothing/],
    [{ runSlot: 5 }, /runSlot must be a function, got 5/],
    [{ runslot: runSlot }, /unknown option "runslot"; did you mean "runSlot"\?/],
    [{ runSlot, config: 5 }, /config: expected a Standard Schema/],
    [{ runSlot, config: z.object({ at: z.date() }) }, /config: this schema's input cannot travel as JSON/],
    [{ runSlot, output: 5 }, /output must be a stream contract or a Standard Schema, got 5/],
    [{ runSlot, isolate: "thread" }, /isolate must be "automation" or "slot"/],
    [{ runSlot, env: ["A B"] }, /env must be an array of names/],
    [{ runSlot, onConfig: true }, /onConfig must be a function/],
    [{ runSlot, uses: { pops: [] } }, /unknown option "pops"; did you mean "pop"\?/],
    [{ runSlot, uses: { pop: [5] } }, /uses: pop must be an array of contracts/],
    [{ runSlot, uses: { pop: {} } }, /uses: pop must be an array of contracts/],
    [{ runSlot, stuckSeconds: 0 }, /stuckSeconds must be at least 1/],
    [{ runSlot, recycle: { afterTurns: 3 } }, /recycle: unknown option "afterTurns"/],
  ])("refuses %o", (definition, message) => {
    expect(wrong(definition)).toThrow(message);
  });

  it("refuses a name outside the grammar", () => {
    expect(() => defineContinuous("URL Pinger", { runSlot })).toThrow(
      /automation "URL Pinger" is not a valid name/,
    );
  });
});

describe("manifestOf", () => {
  it("tells schemas, bounds and declared uses as plain data", () => {
    const source = defineStream("source", z.object({ n: z.number() }));
    const made = defineContinuous("a", {
      config: z.object({ every: z.number().default(1) }),
      output: defineStream("a", z.string(), { maxLength: 10, ttlSeconds: 5 }),
      state: z.object({ cursor: z.string() }),
      uses: { pop: [source], publish: [{ kind: "topic", name: "t" }] },
      onConfig: () => undefined,
      runSlot,
    });
    const manifest = manifestOf(made, "hash");
    expect(manifest).toMatchObject({
      name: "a",
      kind: "continuous",
      version: "hash",
      configSchema: { type: "object" },
      stateSchema: { required: ["cursor"] },
      output: {
        stream: "a",
        schema: { type: "string" },
        maxLength: 10,
        ttlSeconds: 5,
        maxPayloadBytes: 262_144,
      },
      uses: {
        pop: [{ kind: "stream", name: "source", schema: source.jsonSchema }],
        publish: [{ kind: "topic", name: "t", schema: null }],
      },
      liveConfig: true,
    });
    expect(JSON.parse(JSON.stringify(manifest))).toEqual(manifest);
  });

  it("tells the labels that it asks for as text", () => {
    const made = defineContinuous("a", { labels: { region: "eu", browser: true, gpus: 2 }, runSlot });
    expect(manifestOf(made, "h").labels).toEqual({ region: "eu", browser: "true", gpus: "2" });
    const batch = defineBatch("b", { tasks: z.string(), labels: { browser: false }, runOne: () => null });
    expect(manifestOf(batch, "h").labels).toEqual({ browser: "false" });
  });

  it("is short for an automation that declares nothing", () => {
    expect(manifestOf(defineContinuous("a", { runSlot }) as unknown as Automation, "h")).toEqual({
      name: "a",
      kind: "continuous",
      version: "h",
      configSchema: null,
      tasks: null,
      stateSchema: null,
      output: null,
      uses: {},
      liveConfig: false,
    });
  });
});

describe("schedules of a batch automation", () => {
  const runOne = () => null;
  const tasks = z.object({ n: z.number() });
  const define = (schedules: unknown) =>
    defineBatch("reports", { tasks, runOne, schedules: schedules as never });

  it("stand in its manifest, with the queue's settings", () => {
    const made = define({ nightly: { cron: "0 3 * * *", timezone: "Europe/Berlin", payload: { n: 1 } } });
    const manifest = manifestOf(made, "h");
    expect(manifest.schedules).toEqual([
      expect.objectContaining({
        id: "nightly",
        timing: { cron: "0 3 * * *", timezone: "Europe/Berlin" },
        payload: '{"n":1}',
        origin: "definition",
      }),
    ]);
    expect(JSON.parse(JSON.stringify(manifest))).toEqual(manifest);
  });

  it.each([
    [[], /schedules must be schedules by name/],
    [
      { nightly: { cron: "0 3 * *", payload: { n: 1 } } },
      /schedule "nightly" of queue "reports": cron: .* is not a pattern/,
    ],
    [
      { nightly: { cron: "0 3 * * *", payload: { n: "x" } } },
      /schedule "nightly" of queue "reports": payload: n: /,
    ],
    [{ "a/b": { everySeconds: 5, payload: { n: 1 } } }, /"a\/b" is not a valid name for a schedule/],
  ])("are refused when they are wrong: %o", (schedules, message) => {
    expect(() => define(schedules)).toThrow(message);
  });
});
