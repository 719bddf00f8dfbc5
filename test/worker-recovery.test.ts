// Short (`npm test`): workers in this process, on a store in memory, when single answers of the store are lost: after it came back empty, at a
// drain, with a new program; and when it refuses for long what a worker has to write. And what a worker with an older program puts back.
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { defineBatch } from "../src/automation/definition-batch.ts";
import { type Automation, defineContinuous } from "../src/automation/definition.ts";
import { manifestOf } from "../src/automation/manifest.ts";
import { cordon } from "../src/control/operations.ts";
import { FleetError } from "../src/errors.ts";
import { type Log, SILENT } from "../src/internal/log.ts";
import type { Program } from "../src/protocol/program.ts";
import { workerState } from "../src/protocol/status.ts";
import { desired, register, worker as other } from "../src/store/conformance/workers.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { startWorker } from "../src/worker/worker.ts";

// Others stand for election only every 40 s by themselves: what happens sooner, happens for a reason.
const TIMINGS = { beatMs: 100, leaseMs: 120_000, stopGraceMs: 60_000 };

const idle = (name: string) =>
  defineContinuous(name, {
    async runSlot(ctx) {
      for await (const _ of ctx.loop({ everySeconds: 0.05 }));
    },
  });
/** An automation whose run on w1 does not end before it is released. */
function untilReleased() {
  let release = () => {};
  const ended = new Promise<void>((resolve) => (release = resolve));
  const stubborn = defineContinuous("stubborn", {
    async runSlot(ctx) {
      for await (const _ of ctx.loop({ everySeconds: 0.05 }));
      if (ctx.worker === "w1") await ended;
    },
  });
  return { stubborn, release: () => release() };
}
const reports = (schedule: string) =>
  defineBatch("reports", {
    tasks: z.object({}),
    schedules: { [schedule]: { everySeconds: 3600, payload: {} } },
    runOne: async () => {},
  });

function programOf(automations: readonly unknown[], deploy: Program["deploy"] = {}) {
  const all = automations as Automation[];
  const program: Program = {
    automations: all.map((automation) => ({
      manifest: manifestOf(automation, "1"),
      module: "",
      source: "test",
      isolate: "automation",
    })),
    deploy,
  };
  return { program, inline: new Map(all.map((automation) => [automation.name, automation])) };
}

async function memory(): Promise<Store> {
  const store = await openStore("sqlite::memory:");
  onTestFinished(() => store.close());
  return store;
}

type Call = (args: never) => Promise<unknown>;

/** The store as one worker sees it: `before` may fail a call by its name, also with an error of its own, `after` one that was done all the same. */
function seenBy(
  store: Store,
  on: {
    before?: (call: string, args: unknown) => boolean | Error | Promise<boolean>;
    after?: (call: string, args: unknown) => boolean;
  },
): Store {
  const away = () =>
    new FleetError("FLEET_STORE_UNAVAILABLE", "lost by the test", { retryable: true, outcome: "unknown" });
  const through = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== "function") return value;
        if (key === "watch") return value.bind(target);
        return async (args: unknown) => {
          const fails = on.before?.(String(key), args);
          // Not awaited where it need not be: what a call finds is decided as it is made.
          const failed = fails instanceof Promise ? await fails : fails;
          if (failed instanceof Error) throw failed;
          if (failed === true) throw away();
          const answer = await (value as Call).call(target, args as never);
          if (on.after?.(String(key), args) === true) throw away();
          return answer;
        };
      },
    });
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (key === "registry" || key === "queues") return through(value as object);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

async function start(
  store: Store,
  id: string,
  { program, inline }: ReturnType<typeof programOf>,
  log: Log = SILENT,
): ReturnType<typeof startWorker> {
  const worker = await startWorker({
    store,
    storeUrl: "sqlite::memory:",
    program,
    inline,
    id,
    log,
    timings: TIMINGS,
  });
  onTestFinished(() => worker.drain({ deadlineSeconds: 5 }).then(() => undefined));
  return worker;
}

/** A log, and what it was told: "level message (error)". */
function listening(): { log: Log; said: string[] } {
  const said: string[] = [];
  const note = (level: string) => (message: string, fields?: { error?: string }) =>
    void said.push(`${level} ${message} (${fields?.error ?? ""})`);
  return { said, log: { debug() {}, info: note("info"), warn: note("warn"), error: note("error") } };
}
const times = (said: readonly string[], text: string) => said.filter((line) => line.includes(text)).length;

/** As a store that is full: asked again it may be taken. */
const full = () => new FleetError("FLEET_STORE_FAILED", "OOM command not allowed", { retryable: true });
const denied = () => new FleetError("FLEET_STORE_FAILED", "NOPERM no permission to access a key");
const named = (args: unknown) => (args as { name?: string }).name;

const until = (seen: () => Promise<void>, timeout = 20_000) => vi.waitFor(seen, { timeout, interval: 20 });
const schedules = async (store: Store) =>
  (await store.queues.schedules({ queue: "reports" })).schedules.map(({ spec }) => spec.id).toSorted();

async function record(store: Store, id: string) {
  const { workers, now } = await store.registry.view();
  const found = workers.find((one) => one.id === id);
  return found && { ...found, is: workerState(found, now) };
}

async function running(store: Store, id: string): Promise<string[]> {
  const slots = (await record(store, id))?.slots ?? [];
  return slots.filter(({ state }) => state === "running").map(({ automation }) => automation);
}

/** Waits until the worker has read what stands in the store now: it says so with the generation that it runs. */
async function followed(store: Store, id: string, automation: string): Promise<number> {
  const current = (await store.registry.view()).desired[automation];
  if (current === undefined) throw new Error("there is no desired state");
  const generation = current.generation + 1;
  await store.registry.putDesired({
    name: automation,
    desired: { ...current, generation },
    expected: current.generation,
  });
  await until(async () =>
    expect((await record(store, id))?.slots.find((slot) => slot.automation === automation)).toMatchObject({
      state: "running",
      generation,
    }),
  );
  return generation;
}

test.each(
  ["view", "register", "setWish", "putDesired", "schedules", "putSchedule"].flatMap((call) =>
    (["before", "after"] as const).map((when) => [call, when] as const),
  ),
)(
  "one call (%s) that fails %s it is done, while a worker puts back what the store has lost, costs nothing of it",
  async (lost, when) => {
    const store = await memory();
    let armed = false;
    let cut = false;
    const fails = (call: string) => {
      if (!armed || call !== lost) return false;
      armed = false;
      return true;
    };
    const flaky = seenBy(store, {
      before: (call) => (cut && (call === "beat" || call === "view")) || (when === "before" && fails(call)),
      after: (call) => when === "after" && fails(call),
    });
    await register(store.registry, other("w2"));
    await start(flaky, "w1", programOf([idle("idle"), reports("nightly")]));
    await until(async () => expect(await running(store, "w1")).toContain("idle"));
    for (const id of ["w1", "w2"]) await cordon(store.registry, id, "anna");
    const generation = await followed(store, "w1", "idle");

    cut = true;
    await store.wipe();
    armed = true;
    cut = false;
    await until(async () => {
      const { desired: wanted } = await store.registry.view();
      expect(wanted["idle"]?.generation).toBe(generation);
      expect(wanted["reports"]?.generation).toBe(1);
      expect(await schedules(store)).toEqual(["nightly"]);
      expect((await record(store, "w1"))?.wish?.cordon?.by).toBe("anna");
    });
    expect(armed).toBe(false);
    await register(store.registry, other("w2"));
    await until(async () => expect((await record(store, "w2"))?.wish?.cordon?.by).toBe("anna"));
  },
  60_000,
);

test("cordons come back also where somebody else has written the desired state anew before", async () => {
  const store = await memory();
  let cut = false;
  let views = 0;
  const cuttable = seenBy(store, {
    before: (call) => cut && (call === "beat" || call === "view"),
    after: (call) => {
      if (call === "view") views += 1;
      return false;
    },
  });
  await start(cuttable, "w1", programOf([idle("idle")]));
  await until(async () => expect(await running(store, "w1")).toEqual(["idle"]));
  await cordon(store.registry, "w1", "anna");
  await register(store.registry, other("w2"));
  await cordon(store.registry, "w2", "bert");
  // It has read both: as a worker at least every other time, else as the one that leads.
  const before = views;
  await until(async () => {
    await register(store.registry, other("w3"));
    expect(views).toBeGreaterThan(before + 3);
  });

  cut = true;
  await store.wipe();
  await register(store.registry, other("w3"));
  const seeded = { ...desired(1), slots: 1, config: {} };
  expect(await store.registry.putDesired({ name: "idle", desired: seeded, expected: 0 })).toBe("stored");
  cut = false;
  await until(async () => expect((await record(store, "w1"))?.wish?.cordon?.by).toBe("anna"));
  await register(store.registry, other("w2"));
  await until(async () => expect((await record(store, "w2"))?.wish?.cordon?.by).toBe("bert"));
  expect((await store.registry.view()).desired["idle"]).toEqual(seeded);
});

test("a worker with an older program that comes back changes nothing that a newer one has written", async () => {
  const store = await memory();
  let cut = false;
  const cuttable = seenBy(store, { before: (call) => cut && (call === "beat" || call === "view") });
  const old = programOf([idle("idle"), reports("old")], { idle: { slots: 2 } });
  const next = programOf([idle("idle"), reports("new")], { idle: { slots: 4 } });
  await start(cuttable, "host-2", old);
  await until(async () => expect(await running(store, "host-2")).toContain("idle"));
  await start(store, "host-1", next);
  const wanted = async () => (await store.registry.view()).desired["idle"];
  expect(await schedules(store)).toEqual(["new"]);
  await cordon(store.registry, "host-1", "anna");
  await followed(store, "host-2", "idle");
  const before = await wanted();
  expect(before).toMatchObject({ slots: 4 });

  // Its record is gone: it was away for long.
  cut = true;
  const { incarnation } = (await record(store, "host-2")) ?? { incarnation: "" };
  await store.registry.deregister({ workerId: "host-2", incarnation });
  expect(await store.registry.removeWorker({ workerId: "host-2" })).toBe("removed");
  await store.registry.setWish({ workerId: "host-1", kind: "cordon", wish: null });
  cut = false;
  await until(async () => expect((await record(store, "host-2"))?.is).toBe("online"));
  await followed(store, "host-2", "idle");
  expect(await wanted()).toMatchObject({ ...before, generation: (before?.generation ?? 0) + 1 });
  expect(await schedules(store)).toEqual(["new"]);
  // Nor does it ask again for what was taken back meanwhile.
  expect((await record(store, "host-1"))?.wish).toBeUndefined();

  // Where the store has lost all, it adds what is not there.
  const last = await wanted();
  await store.wipe();
  await until(async () => {
    expect(await wanted()).toEqual(last);
    expect(await schedules(store)).toContain("new");
    for (const id of ["host-1", "host-2"]) expect((await record(store, id))?.is).toBe("online");
  });
  expect(await wanted()).toEqual(last);
});

test("a drain whose announcement is lost is known all the same, and others run what has ended here", async () => {
  const store = await memory();
  let lost = 0;
  const flaky = seenBy(store, {
    before: (call, args) =>
      call === "register" && (args as { worker: { draining: boolean } }).worker.draining && lost++ < 2,
  });
  const { stubborn, release } = untilReleased();
  const both = programOf([idle("idle"), stubborn]);
  const w1 = await start(flaky, "w1", both);
  await until(async () => expect(await running(store, "w1")).toHaveLength(2));
  await start(store, "w2", both);
  const drained = w1.drain({ deadlineSeconds: 60 });
  await until(async () => {
    expect(await record(store, "w1")).toMatchObject({ is: "draining", drain: { forced: false } });
    expect(await running(store, "w2")).toContain("idle");
  });
  expect(lost).toBeGreaterThanOrEqual(2);
  release();
  expect(await drained).toEqual({ forced: false });
});

test("a new program whose announcement or deploy is lost is told again, and its automations are placed", async () => {
  for (const call of ["register", "putDesired"]) {
    const store = await memory();
    let armed = false;
    const flaky = seenBy(store, {
      before: (name) => {
        if (!armed || name !== call) return false;
        armed = false;
        return true;
      },
    });
    const [first, second] = [idle("first"), idle("second")];
    const { inline } = programOf([first, second]);
    const worker = await start(flaky, "w1", { ...programOf([first]), inline });
    await until(async () => expect(await running(store, "w1")).toEqual(["first"]));
    armed = true;
    const outcome = await worker.replace(programOf([first, second]).program).then(
      async () =>
        Object.hasOwn((await store.registry.view()).desired, "second") ? "written" : "not written, nor told",
      (error: Error) => error.message,
    );
    expect(armed).toBe(false);
    // Whoever asked is told, unless it was a tick of the worker that failed, and all has been written since.
    expect(call === "register" ? ["lost by the test"] : ["lost by the test", "written"]).toContain(outcome);
    await until(async () => expect((await running(store, "w1")).toSorted()).toEqual(["first", "second"]));
  }
});

test.each([
  ["register", "what has changed of this worker could not be announced"],
  ["putDesired", "what the new program asks for could not be written"],
  ["putSchedule", "what the new program asks for could not be written"],
])(
  "a store that takes nothing new (%s) for long keeps a worker with a new program from nothing else",
  async (call, words) => {
    const store = await memory();
    let refuses = false;
    let refused = 0;
    const flaky = seenBy(store, {
      before: (name, args) => {
        if (!refuses || name !== call || (call === "putDesired" && named(args) !== "reports")) return false;
        refused += 1;
        return full();
      },
    });
    const { log, said } = listening();
    const [first, next] = [idle("first"), reports("nightly")];
    const { inline } = programOf([first, next]);
    const worker = await start(flaky, "w1", { ...programOf([first]), inline }, log);
    await until(async () => expect(await running(store, "w1")).toEqual(["first"]));
    refuses = true;
    await expect(worker.replace(programOf([first, next]).program)).rejects.toThrow("OOM");
    await until(async () => expect(refused).toBeGreaterThan(2));
    const before = refused;
    await followed(store, "w1", "first");
    // Also what it holds is given back, as somebody else wants.
    const generation = 1 + ((await store.registry.view()).desired["first"]?.generation ?? 0);
    const fewer = { ...desired(generation), slots: 0, config: {} };
    await store.registry.putDesired({ name: "first", desired: fewer, expected: generation - 1 });
    await until(async () => {
      expect((await store.registry.view()).leases.map(({ automation }) => automation)).not.toContain("first");
      expect(refused).toBeGreaterThan(before + 2);
    });
    expect(times(said, `${words}; trying again (OOM`)).toBe(1);
    expect(times(said, "does not answer")).toBe(0);

    refuses = false;
    await until(async () => {
      expect(await schedules(store)).toEqual(["nightly"]);
      expect((await store.registry.view()).desired).toHaveProperty("reports");
    });
    await until(async () => expect((await record(store, "w1"))?.automations).toContain("reports"));
    expect(times(said, "warn")).toBe(1);
  },
  60_000,
);

test("a program whose deploy is wrong is told to whoever put it in place, also where a tick has found it before", async () => {
  const store = await memory();
  let hold = false;
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const held = seenBy(store, {
    before: (call) => {
      if (!hold || call !== "register") return false;
      // The first one only: that of whoever puts it in place.
      hold = false;
      return released.then(() => false);
    },
  });
  const { log, said } = listening();
  const [first, second] = [idle("first"), idle("second")];
  const { inline } = programOf([first, second]);
  const worker = await start(held, "w1", { ...programOf([first]), inline }, log);
  await until(async () => expect(await running(store, "w1")).toEqual(["first"]));
  hold = true;
  const told = worker.replace(programOf([first, second], { second: { slots: -1 } }).program).then(
    () => undefined,
    (error: unknown) => error,
  );
  await until(async () => expect(times(said, "second: slots")).toBe(1));
  release();
  expect(await told).toMatchObject({ message: expect.stringContaining("second: slots") });
  expect(said.filter((line) => line.includes("second: slots"))).toEqual([
    expect.stringMatching(/^error what the new program asks for is refused/),
  ]);
  // It is not tried again, costs nothing else, and the next one is as any other.
  await followed(store, "w1", "first");
  await worker.replace(programOf([first, second], { second: { slots: 1 } }).program);
  await until(async () => expect((await running(store, "w1")).toSorted()).toEqual(["first", "second"]));
  expect(times(said, "second: slots")).toBe(1);
});

test("a store that came back empty, and is full, keeps a worker from nothing but what it cannot write", async () => {
  const store = await memory();
  let refuses = false;
  let refused = 0;
  const flaky = seenBy(store, {
    before: (call) => {
      if (!refuses || call !== "putSchedule") return false;
      refused += 1;
      return full();
    },
  });
  const { log, said } = listening();
  await start(flaky, "w1", programOf([reports("nightly"), idle("idle")]), log);
  await until(async () => expect(await running(store, "w1")).toContain("idle"));
  await register(store.registry, other("w2"));
  await cordon(store.registry, "w2", "anna");
  await followed(store, "w1", "idle");
  refuses = true;
  await store.wipe();
  await register(store.registry, other("w2"));
  await until(async () => {
    expect(await running(store, "w1")).toContain("idle");
    expect((await record(store, "w2"))?.wish?.cordon?.by).toBe("anna");
    expect(refused).toBeGreaterThan(0);
  });
  // Taken back while there is something left to put back, it stays so.
  await store.registry.setWish({ workerId: "w2", kind: "cordon", wish: null });
  const before = refused;
  await followed(store, "w1", "idle");
  await until(async () => expect(refused).toBeGreaterThan(before + 2));
  expect((await record(store, "w2"))?.wish?.cordon).toBeUndefined();
  expect((await store.registry.view()).leader).toMatch(/^w1 /);
  expect(times(said, "what the store has lost could not be put back; trying again (OOM")).toBe(1);
  expect(times(said, "does not answer")).toBe(0);
  refuses = false;
  await until(async () => expect(await schedules(store)).toEqual(["nightly"]));
  await until(async () => expect(times(said, "what the store has lost is put back")).toBe(1));
}, 60_000);

test("an automation whose desired state cannot be put back costs the others nothing, and its slots go on", async () => {
  const store = await memory();
  let refuses = false;
  let refused = 0;
  const flaky = seenBy(store, {
    before: (call, args) => {
      if (!refuses || call !== "putDesired" || named(args) !== "broken") return false;
      refused += 1;
      return denied();
    },
  });
  const { log, said } = listening();
  await start(flaky, "w1", programOf([idle("broken"), idle("idle"), reports("nightly")]), log);
  await until(async () =>
    expect((await running(store, "w1")).toSorted()).toEqual(["broken", "idle", "reports"]),
  );
  const generation = await followed(store, "w1", "idle");
  refuses = true;
  await store.wipe();
  await until(async () => {
    expect(refused).toBeGreaterThan(0);
    expect((await store.registry.view()).desired["idle"]?.generation).toBe(generation);
    expect(await schedules(store)).toEqual(["nightly"]);
  });
  await followed(store, "w1", "idle");
  // Placed anew, without it.
  await until(async () => {
    const { assignments, desired: wanted } = await store.registry.view();
    expect(Object.keys(assignments)).toContain("idle");
    expect(Object.keys(wanted)).not.toContain("broken");
  });
  await followed(store, "w1", "idle");
  expect((await running(store, "w1")).toSorted()).toEqual(["broken", "idle", "reports"]);
  expect(times(said, "error what the store has lost could not be put back; trying again (NOPERM")).toBe(1);
}, 60_000);

test("a worker that drains gives the lead up at once: another one leads and places while it still drains", async () => {
  const store = await memory();
  const { stubborn, release } = untilReleased();
  const both = programOf([idle("idle"), stubborn]);
  const w1 = await start(store, "w1", both);
  await until(async () => expect(await running(store, "w1")).toHaveLength(2));
  const w2 = await start(store, "w2", both);
  await until(async () => expect((await record(store, "w2"))?.is).toBe("online"));
  expect((await store.registry.view()).leader).toMatch(/^w1 /);
  const drained = w1.drain({ deadlineSeconds: 60 });
  // Far sooner than it would ask for the lead by itself.
  await until(async () => {
    const { leader, assignments } = await store.registry.view();
    expect(leader).toMatch(/^w2 /);
    expect(assignments).toEqual({ idle: { 0: "w2" }, stubborn: { 0: "w2" } });
  }, 15_000);
  expect((await record(store, "w1"))?.is).toBe("draining");
  release();
  expect(await drained).toEqual({ forced: false });
  expect((await store.registry.view()).leader).toMatch(/^w2 /);
  await w2.drain({ deadlineSeconds: 5 });
  expect((await store.registry.view()).leader).toBeNull();
});
