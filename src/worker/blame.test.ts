import { describe, expect, it } from "vitest";
import { QUEUE_DEFAULTS } from "../contracts/queue.ts";
import { blame } from "./blame.ts";
import type { Flight } from "./flight-mark.ts";
import type { HostEnd } from "./hosts.ts";

const BATCH = { queue: "q", schema: {}, resultSchema: null, options: QUEUE_DEFAULTS };
const mark = (slotId: number) => ({ slotId, seq: slotId, startedAt: 0, timeoutMs: 0, tasks: [] });
const flight = (begun: readonly number[], more: Partial<Flight> = {}): Flight => ({
  lastSlot: 2,
  endedBy: null,
  tasks: begun.map(mark),
  ...more,
});

/** An end of a host with slots 0 to 2 on it. */
function who(
  change: Partial<HostEnd>,
  begun: readonly number[],
  more: Partial<Flight> = {},
  accused: number[] = [],
) {
  const end: HostEnd = {
    key: "q@1",
    automation: "q",
    tasks: BATCH,
    holder: "i.1",
    orderly: false,
    lastWords: undefined,
    killedFor: undefined,
    ...change,
    exit: { code: null, signal: "SIGABRT", stderr: "", ...change.exit, flight: flight(begun, more) },
  };
  const slots = [0, 1, 2].map((slotId) => ({ automation: "q", slotId }));
  const { cause, guilty, tasksBear } = blame(end, slots, accused);
  return { cause, guilty, tasksBear };
}

describe("blame", () => {
  it("names nobody where a task of several may have broken its process after an await", () => {
    const unknown = { guilty: [], tasksBear: true };
    expect(who({}, [0, 1, 2])).toEqual({ cause: "killed", ...unknown });
    expect(who({ killedFor: "loop-blocked" }, [0, 1])).toEqual({ cause: "loop-blocked", ...unknown });
    expect(who({ killedFor: "memory" }, [0, 1])).toEqual({ cause: "out-of-memory", ...unknown });
    const stderr = "FATAL ERROR: Reached heap limit - JavaScript heap out of memory";
    expect(who({ exit: { stderr } as HostEnd["exit"] }, [0, 1])).toEqual({
      cause: "out-of-memory",
      ...unknown,
    });
  });

  it("names the slot of a task that runs alone", () => {
    expect(who({}, [1])).toEqual({ cause: "killed", guilty: [1], tasksBear: false });
    // A mark of a slot that is not there any more.
    expect(who({}, [1, 9])).toMatchObject({ guilty: [1] });
  });

  it("leaves it to the slots where no task had begun", () => {
    expect(who({}, [])).toEqual({ cause: "killed", guilty: [], tasksBear: false });
  });

  it("is sure of what the child says itself: an error that nobody caught, process.exit", () => {
    const lastWords = { error: "no", slotId: 0, uncaught: "user code" as const };
    expect(who({ lastWords }, [0, 1, 2])).toMatchObject({ cause: "uncaught", guilty: [0] });
    const exit = { code: 0, signal: null } as HostEnd["exit"];
    expect(who({ exit }, [0, 1, 2], { endedBy: 1 })).toEqual({
      cause: "exited",
      guilty: [1],
      tasksBear: false,
    });
    // Called where no slot's code runs.
    expect(who({ exit }, [0, 1, 2])).toMatchObject({ guilty: [], tasksBear: true });
  });

  it("is sure of the slots because of which the supervisor has killed it", () => {
    for (const killedFor of ["would-not-stop", "task-timeout"] as const)
      expect(who({ killedFor }, [0, 1, 2], {}, [0, 1])).toEqual({
        cause: killedFor,
        guilty: [0, 1],
        tasksBear: false,
      });
  });

  it("takes, of endless loops, the one that said last that it gets on", () => {
    expect(who({ tasks: null }, [])).toEqual({ cause: "killed", guilty: [2], tasksBear: false });
    expect(who({ tasks: null }, [], { lastSlot: 9 })).toMatchObject({ guilty: [], tasksBear: false });
  });

  it("records the end of standard error, without passwords of addresses", () => {
    const errorOf = (stderr: string, stderrCut = false) =>
      blame(
        {
          key: "q@1",
          automation: "q",
          tasks: null,
          holder: "i.1",
          orderly: false,
          lastWords: undefined,
          killedFor: undefined,
          exit: { code: 1, signal: null, stderr, stderrCut, flight: flight([]) },
        },
        [],
        [],
      ).error;
    expect(errorOf("Error: refused by postgres://app:S3CRET-x@db\n")).toBe(
      "the process ended (exit code 1); the end of its standard error:\nError: refused by postgres://***@db",
    );
    // What is kept may begin anywhere.
    const long = errorOf(`postgres://app:${"S3CRET-x".repeat(400)}@db is away ${"w ".repeat(600)}end`);
    expect(long).not.toContain("S3C");
    expect(long).toMatch(/db is away w .* w end$/);
    expect(long.length).toBeLessThan(1600);
    // Also where little of it is left.
    expect(errorOf("S3CRET-x@db is away", true)).toMatch(/:\n\*\*\*@db is away$/);
    expect(errorOf("me@example.com is away")).toMatch(/:\nme@example.com is away$/);
  });
});
