import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { defineQueue } from "../contracts/queue.ts";
import { defineStream } from "../contracts/stream.ts";
import type { ActiveTask } from "./active-task.ts";
import { defineBatch } from "./definition-batch.ts";
import { isAutomation } from "./definition.ts";
import { manifestOf } from "./manifest.ts";

const Page = z.object({ url: z.string(), depth: z.coerce.number<number>().default(1) });
const Found = z.object({ links: z.number().transform(String) });
const PAGES = defineQueue("pages", { payload: Page, result: Found, maxAttempts: 2 });
const runOne = () => undefined;
const wrong = (definition: object) => () => defineBatch("a", definition as { tasks: typeof Page });

describe("defineBatch", () => {
  it("exposes name, tasks and output, and is frozen", () => {
    const made = defineBatch("pages", { tasks: PAGES, runOne: () => ({ links: 1 }) });
    expect(made.name).toBe("pages");
    expect(made.tasks).toBe(PAGES);
    expect(made.output).toBeUndefined();
    expect(Object.isFrozen(made)).toBe(true);
    expect(isAutomation(made)).toBe(true);
    expect(defineBatch("a", { tasks: z.null(), output: z.number(), runOne }).output).toMatchObject({
      name: "a",
    });
  });

  it("makes a contract of a schema, and of what defineQueue takes", () => {
    expect(defineBatch("a", { tasks: Page, runOne }).tasks).toMatchObject({
      kind: "queue",
      name: "a",
      payload: Page,
    });
    const made = defineBatch("a", {
      tasks: { payload: Page, result: Found, concurrency: 3 },
      runOne: () => ({ links: 1 }),
    });
    expect(made.tasks).toMatchObject({
      name: "a",
      result: Found,
      options: { concurrency: 3, maxAttempts: 5 },
    });
  });

  it("refuses a contract of another name", () => {
    expect(wrong({ tasks: PAGES, runOne })).toThrowError(
      expect.objectContaining({
        code: "FLEET_DEFINITION_INVALID",
        message: expect.stringContaining('its queue contract is named "pages"') as string,
      }),
    );
    expect(wrong({ tasks: Page, output: defineStream("b", z.null()), runOne })).toThrow(
      /its output contract is named "b"/,
    );
  });

  it.each<[object, RegExp]>([
    [{ runOne }, /tasks is missing; give the schema/],
    [{ tasks: 5, runOne }, /queue "a" must be a Standard Schema/],
    [{ tasks: z.object({ at: z.date() }), runOne }, /payload: this schema's input cannot travel as JSON/],
    [
      { tasks: { payload: Page, maxAttempts: Infinity }, runOne },
      /maxAttempts must be a whole number, got Infinity/,
    ],
    [
      { tasks: { payload: Page, maxAttempts: Number.NaN }, runOne },
      /maxAttempts must be a whole number, got NaN/,
    ],
    [{ tasks: { payload: Page, maxAttempts: -1 }, runOne }, /maxAttempts must be at least 1/],
    [{ tasks: { payload: Page, maxAttempts: 1.5 }, runOne }, /maxAttempts must be a whole number/],
    [{ tasks: Page }, /give runOne\(task, ctx\), or runMany\(tasks, ctx\)/],
    [{ tasks: Page, runOne, runMany: runOne }, /give either runOne or runMany, not both/],
    [{ tasks: Page, runOne: 5 }, /runOne must be a function/],
    [{ tasks: Page, runOne, size: 5 }, /size is for runMany/],
    [{ tasks: Page, runMany: runOne, size: 1001 }, /size must be at most 1000/],
    [{ tasks: Page, runMany: runOne, waitSeconds: -1 }, /waitSeconds must be at least 0/],
    [{ tasks: Page, runone: runOne }, /unknown option "runone"; did you mean "runOne"\?/],
    [{ tasks: Page, runOne, labels: ["gpu"] }, /labels must be an object/],
    [{ tasks: Page, runOne, labels: { gpu: null } }, /labels\.gpu must be a text .*, got null/],
    [{ tasks: Page, runOne, labels: { "a b": 1 } }, /name of a label must be .*, got "a b"/],
  ])("refuses %o", (definition, message) => {
    expect(wrong(definition)).toThrow(message);
  });

  it("says in its manifest what the queue takes and how it is run", () => {
    const made = defineBatch("pages", { tasks: PAGES, stuckSeconds: 9, runOne: () => ({ links: 1 }) });
    const manifest = manifestOf(made, "v");
    expect(manifest).toMatchObject({
      kind: "batch",
      stuckSeconds: 9,
      output: null,
      tasks: {
        queue: "pages",
        schema: PAGES.jsonSchema,
        resultSchema: PAGES.resultJsonSchema,
        options: { maxAttempts: 2 },
      },
    });
    expect(JSON.parse(JSON.stringify(manifest))).toEqual(manifest);
  });
});

it("types what a handler gets, and what it returns", () => {
  defineBatch("pages", {
    tasks: PAGES,
    config: z.object({ n: z.number().default(1) }),
    output: z.string(),
    runOne(task, ctx) {
      expectTypeOf(task).toEqualTypeOf<ActiveTask<{ url: string; depth: number }>>();
      expectTypeOf(ctx.config).toEqualTypeOf<{ n: number }>();
      expectTypeOf(ctx.emit).parameter(0).toEqualTypeOf<string>();
      return { links: 3 };
    },
  });
  defineBatch("a", {
    tasks: { payload: z.string(), result: z.number() },
    runMany: (tasks) => tasks.map(({ payload }) => (payload === "" ? new Error("empty") : payload.length)),
  });
  // @ts-expect-error: the result is to be what the schema takes in.
  defineBatch("pages", { tasks: PAGES, runOne: () => ({ links: "3" }) });
  const text = async () => Promise.resolve("text");
  // @ts-expect-error: as above.
  defineBatch("a", { tasks: { payload: Page, result: z.number() }, runOne: text });
  const made = defineBatch("pages", { tasks: PAGES, runOne: () => ({ links: 1 }) });
  expectTypeOf(made.tasks).toEqualTypeOf<typeof PAGES>();
});
