// configs pushed to workers that run. `npm test`: on Redis; `npm run soak`: on both stores.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ConfigConflict, configHistory, patchConfig } from "../src/control/config.ts";
import type { SlotStatus } from "../src/protocol/status.ts";
import type { Store } from "../src/store/store.ts";
import { makeProject, runFleet, startFleet, writeInto } from "./support/cli.ts";
import { openPlace, placesFor } from "./support/places.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 180_000 });

const TIMINGS = { beatMs: 200, leaseMs: 4000, backoffBaseMs: 100, backoffCapMs: 200 };
const env = { FLEET_TIMINGS: JSON.stringify(TIMINGS) };
const WAIT = { timeout: 60_000, interval: 50 };

/** Says its config and each change of it. Thirteen fits the published schema, but not the schema itself; seven is refused for a while. */
const live = (more = "") => `
import { existsSync } from "node:fs";
import { defineContinuous } from "fleet-framework";
import { z } from "zod";
export default defineContinuous("live", {
  config: z.object({ n: z.number().default(0).refine((n) => n !== 13, "thirteen brings bad luck"), who: z.string().default("all") }),
  ${more}
  async runSlot(ctx) {
    const say = () => console.log(["has", ctx.slotId, ctx.config.n, ctx.config.who, process.pid].join(" "));
    console.log("begin " + ctx.slotId);
    say();
    for await (const _ of ctx.loop({ everySeconds: 0.05 }));
    await new Promise((resolve) => setTimeout(resolve, 100));
    console.log("end " + ctx.slotId);
  },
});`;
const LIVE = live(`async onConfig(config, ctx) {
    if (config.n === 7 && !existsSync("sevens-welcome")) throw new Error("no sevens yet");
    console.log(["has", ctx.slotId, config.n, config.who, process.pid].join(" "));
  },`);
const project = (deploy: object) => `
import { defineConfig } from "fleet-framework";
export default defineConfig({ automations: ["./*.auto.ts"], deploy: ${JSON.stringify(deploy)} });`;

async function statuses(store: Store, name = "live"): Promise<SlotStatus[]> {
  const { workers, now } = await store.registry.view();
  return workers
    .filter(({ expiresAt }) => expiresAt > now)
    .flatMap(({ slots }) => slots)
    .filter(({ automation }) => automation === name)
    .toSorted((a, b) => a.slotId - b.slotId);
}

/** Waits until all slots run with the config of the present generation. */
async function followed(store: Store, slots: number, name = "live"): Promise<SlotStatus[]> {
  return vi.waitFor(async () => {
    const found = await statuses(store, name);
    const { generation } = (await store.registry.view()).desired[name] as { generation: number };
    expect(found.map((slot) => [slot.state, slot.generation])).toEqual(
      Array.from({ length: slots }, () => ["running", generation]),
    );
    return found;
  }, WAIT);
}

/** What of a run must not change while it goes on. */
const runOf = ({ slotId, state, restarts, pid }: SlotStatus) => ({ slotId, state, restarts, pid });
/** How often each slot's code has begun. */
const begun = (text: string) => text.match(/^begin \d+$/gm)?.length ?? 0;

describe.each(placesFor("Redis"))("on $name", ({ at }) => {
  const setUp = async (
    { slots = 2, config = {} as object, name = "live" },
    files: Record<string, string>,
    more: { env?: Record<string, string>; flags?: string[] } = {},
  ) => {
    const cwd = makeProject({ "fleet.config.ts": project({ [name]: { slots, config } }), ...files });
    const place = at(cwd);
    const store = await openPlace(place);
    onTestFinished(() => store.close());
    const fleet = (...args: string[]) => runFleet([...args, ...place.flags], { cwd });
    const start = (flags: string[] = [], alsoEnv: Record<string, string> = {}) => {
      const worker = startFleet(["worker", ...place.flags, ...flags], { cwd, env: { ...env, ...alsoEnv } });
      onTestFinished(async () => {
        worker.signal("SIGTERM");
        await worker.ended;
      });
      return worker;
    };
    const worker = start(more.flags, more.env);
    await followed(store, slots, name);
    return { cwd, fleet, store, worker, start, url: place.url };
  };
  /** The last config that each slot has said to have. */
  const said = (text: string) =>
    Object.fromEntries([...text.matchAll(/^has (\d+) (.*) \d+$/gm)].map(([, id, what]) => [id, what]));

  test("a config is taken live by all slots, in the same runs, and one that does not fit by none", async () => {
    // Only the first worker bears the label: the second one, when it comes, is to move nothing.
    const { cwd, fleet, store, worker, start } = await setUp(
      { slots: 3 },
      { "a.auto.ts": LIVE.replace("config:", 'labels: { place: "first" },\n  config:') },
      { flags: ["--labels", "place=first"] },
    );
    const before = (await statuses(store)).map(runOf);

    const set = await fleet("config", "set", "live", "n=2", "--if-match", "1", "--wait", "20");
    expect(set).toEqual({
      code: 0,
      stdout: 'The config of "live" is changed (generation 2).\n  + /n: 2\nAll 3 slots have their config.\n',
      stderr: "",
    });
    await vi.waitFor(
      () => expect(said(worker.stdout())).toEqual({ 0: "2 all", 1: "2 all", 2: "2 all" }),
      WAIT,
    );
    expect((await followed(store, 3)).map(runOf)).toEqual(before);
    expect(begun(worker.stdout())).toBe(3);

    // What the published schema refuses changes nothing, not even the generation.
    const wrong = await fleet("config", "set", "live", "n=two");
    expect(wrong).toMatchObject({ code: 2, stdout: "" });
    expect(wrong.stderr).toBe('fleet: config of "live": n: must be number. Nothing was changed\n');
    const stale = await fleet("config", "set", "live", "n=3", "--if-match", "1", "--json");
    expect(stale).toMatchObject({ code: 1, stdout: "" });
    expect(JSON.parse(stale.stderr)).toMatchObject({ code: "FLEET_CONFLICT" });
    expect((await store.registry.view()).desired["live"]).toMatchObject({ generation: 2, config: { n: 2 } });

    // The same by file: one clear error, and what runs goes on.
    writeInto(cwd, "fleet.config.ts", project({ live: { slots: 3, config: { n: "two" } } }));
    const second = start();
    await second.until((text) => text.includes("must be number"));
    await vi.waitFor(async () => expect((await store.registry.view()).workers).toHaveLength(2), WAIT);
    expect(second.stderr().match(/must be number/g)).toHaveLength(1);
    expect((await store.registry.view()).desired["live"]).toMatchObject({ generation: 2, config: { n: 2 } });
    expect((await statuses(store)).map(runOf)).toEqual(before);
  });

  test("what only the process of a slot can refuse leaves its run alone, is shown, and is offered again", async () => {
    const { cwd, fleet, store, worker } = await setUp({ slots: 2 }, { "a.auto.ts": LIVE });
    const before = (await statuses(store)).map(runOf);
    const refused = (reason: RegExp) =>
      vi.waitFor(async () => {
        const found = await statuses(store);
        for (const { rejected } of found) expect(rejected?.reason).toMatch(reason);
        return found;
      }, WAIT);

    const late = await fleet("config", "set", "live", "n=13", "--wait", "2");
    expect(late.code).toBe(1);
    expect(late.stderr).toContain("slot 0: running (it refused the config");
    expect(late.stderr).toContain("thirteen brings bad luck");
    for (const slot of await refused(/thirteen/))
      expect(slot).toMatchObject({ generation: 1, sentGeneration: 2, rejected: { generation: 2 } });
    expect((await statuses(store)).map(runOf)).toEqual(before);
    expect(said(worker.stdout())).toEqual({ 0: "0 all", 1: "0 all" });
    expect((await fleet("status")).stdout).toContain("keeps its config: it refused that of generation 2");

    // Refused once and offered again: applied, without another change.
    await fleet("config", "set", "live", "n=7");
    await refused(/no sevens yet/);
    writeFileSync(join(cwd, "sevens-welcome"), "");
    const after = await followed(store, 2);
    expect(after.map(runOf)).toEqual(before);
    expect(after.map(({ generation, rejected }) => [generation, rejected])).toEqual([
      [3, null],
      [3, null],
    ]);
    expect(said(worker.stdout())).toEqual({ 0: "7 all", 1: "7 all" });

    // Back to what it has: nothing to be done, and nothing is refused any more.
    await fleet("config", "set", "live", "n=13");
    await refused(/thirteen/);
    expect((await fleet("config", "rollback", "live", "3", "--wait", "20")).code).toBe(0);
    expect((await statuses(store)).map(({ rejected }) => rejected)).toEqual([null, null]);
    expect(begun(worker.stdout())).toBe(2);
    const notes = (await configHistory(store, "live")).map(({ generation, note }) => [generation, note]);
    expect(notes).toEqual([
      [5, "back to generation 3"],
      [4, null],
      [3, null],
      [2, null],
      [1, null],
    ]);
  });

  test("without onConfig slots are restarted one by one, but not for a config that they would refuse", async () => {
    const { fleet, store, worker } = await setUp({ slots: 3 }, { "a.auto.ts": live() });
    const before = await statuses(store);
    await fleet("config", "set", "live", "n=13");
    await vi.waitFor(async () => {
      const reasons = (await statuses(store)).map(({ rejected }) => rejected?.reason);
      expect(reasons).toEqual(Array(3).fill(expect.stringContaining("thirteen")));
    }, WAIT);
    expect((await statuses(store)).map(runOf)).toEqual(before.map(runOf));
    expect(worker.stdout()).not.toContain("end");

    const set = await fleet("config", "set", "live", "n=4", "--wait", "20");
    expect(set).toMatchObject({ code: 0, stderr: "" });
    expect(said(worker.stdout())).toEqual({ 0: "4 all", 1: "4 all", 2: "4 all" });
    const events = [...worker.stdout().matchAll(/^(begin|end) (\d)$/gm)].map(([, what]) => what).slice(3);
    expect(events).toEqual(["end", "begin", "end", "begin", "end", "begin"]);
    // In the process that was there.
    expect((await statuses(store)).map(({ pid }) => pid)).toEqual(before.map(({ pid }) => pid));
    expect((await statuses(store)).map(({ restarts }) => restarts)).toEqual([0, 0, 0]);
  });

  test("of many writers at once those who come too late are refused, and all slots end on the last config", async () => {
    const { store, start } = await setUp({ slots: 4 }, { "a.auto.ts": LIVE });
    start();
    const committed: number[] = [1];
    for (let round = 0; round < 10; round++) {
      const { generation } = (await store.registry.view()).desired["live"] as { generation: number };
      const answers = await Promise.allSettled(
        Array.from({ length: 10 }, (_, i) =>
          patchConfig(
            store,
            "live",
            { patch: { n: 100 + round, who: `w${i}` } },
            { by: `writer ${i}`, ifMatch: generation },
          ),
        ),
      );
      const won = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
      const lost = answers.flatMap((answer) =>
        answer.status === "rejected" ? [answer.reason as ConfigConflict] : [],
      );
      expect(won.map(({ desired }) => desired.generation)).toEqual([generation + 1]);
      for (const error of lost) {
        expect(error).toBeInstanceOf(ConfigConflict);
        expect(error).toMatchObject({ code: "FLEET_CONFLICT", retryable: false, present: generation + 1 });
      }
      committed.push(generation + 1);
    }
    // Without a condition all are written, one on top of the other.
    const all = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        patchConfig(store, "live", { patch: { n: 200 + i } }, { by: `w${i}` }),
      ),
    );
    committed.push(...all.map(({ desired }) => desired.generation));
    expect(committed.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 21 }, (_, i) => i + 1));
    const [last] = await configHistory(store, "live", { limit: 1 });
    const found = await followed(store, 4);
    expect(found.map(({ generation }) => generation)).toEqual(Array(4).fill(21));
    expect((await store.registry.view()).desired["live"]).toMatchObject({
      generation: 21,
      config: last?.config,
    });
  });

  test("overrides reach the workers with their labels, and no other", async () => {
    const { fleet, store, worker, start } = await setUp(
      { slots: 2 },
      { "a.auto.ts": LIVE },
      { flags: ["--id", "eu", "--labels", "region=eu"] },
    );
    const other = start(["--id", "us", "--labels", "region=us"]);
    await vi.waitFor(async () => {
      const { workers } = await store.registry.view();
      expect(workers.map(({ slots }) => slots.filter(({ state }) => state === "running").length)).toEqual([
        1, 1,
      ]);
    }, WAIT);
    const set = await fleet("config", "set", "live", "who=europe", "--labels", "region=eu", "--wait", "20");
    expect(set).toMatchObject({ code: 0, stderr: "" });
    await patchConfig(store, "live", { patch: { n: 5 } }, { by: "jo" });
    const [eu, us] = (await store.registry.view()).workers.map(({ slots }) => slots.at(-1)?.slotId);
    await vi.waitFor(() => expect(said(worker.stdout())[`${eu}`]).toBe("5 europe"), WAIT);
    await vi.waitFor(() => expect(said(other.stdout())[`${us}`]).toBe("5 all"), WAIT);
    expect(JSON.parse((await fleet("config", "get", "live", "--labels", "region=eu")).stdout)).toEqual({
      n: 5,
      who: "europe",
    });
  });

  test("new code that does not take the config leaves the old code running until it does", async () => {
    const cwd = makeProject({
      "fleet.config.ts": project({ live: { slots: 2 } }),
      "a.auto.ts": LIVE,
    });
    const place = at(cwd);
    const store = await openPlace(place);
    onTestFinished(() => store.close());
    const dev = startFleet(["dev", ...place.flags], { cwd, env });
    onTestFinished(async () => {
      dev.signal("SIGTERM");
      await dev.ended;
    });
    const before = (await followed(store, 2)).map(runOf);
    writeInto(cwd, "a.auto.ts", LIVE.replace("z.object({", "z.object({ must: z.string(),"));
    await vi.waitFor(async () => {
      const found = await statuses(store);
      expect(found.some(({ rejected }) => rejected?.reason.includes("must: "))).toBe(true);
    }, WAIT);
    expect((await statuses(store)).map(runOf)).toEqual(before);
    expect(begun(dev.stdout())).toBe(2);
    await patchConfig(store, "live", { patch: { must: "be", n: 8 } }, { by: "jo" });
    const after = await followed(store, 2);
    for (const { pid } of after) expect(before.map((one) => one.pid)).not.toContain(pid);
    expect(said(dev.stdout())).toEqual({ 0: "8 all", 1: "8 all" });
  });

  test("a store that comes back empty gets config, overrides and generation back", async () => {
    const { store, worker } = await setUp({ slots: 2 }, { "a.auto.ts": LIVE });
    await patchConfig(store, "live", { patch: { n: 5 } }, { by: "jo" });
    await patchConfig(store, "live", { patch: { who: "x" }, labels: { a: "b" } }, { by: "jo" });
    await followed(store, 2);
    const before = (await store.registry.view()).desired["live"];
    await store.wipe();
    await vi.waitFor(async () => {
      expect((await store.registry.view()).desired["live"]).toEqual(before);
    }, WAIT);
    await followed(store, 2);
    expect(await configHistory(store, "live")).toMatchObject([
      { generation: 3, config: { n: 5 }, note: "put back: the store had lost it" },
    ]);
    expect(said(worker.stdout())).toEqual({ 0: "5 all", 1: "5 all" });
    expect((await patchConfig(store, "live", { patch: { n: 6 } }, { by: "jo" })).desired.generation).toBe(4);
    await followed(store, 2);
  });

  test("a canary whose slots crash is taken back by itself, and the others never had it", async () => {
    const CRASHING = LIVE.replace(
      /for await \(const _ of (.*)\);/,
      'for await (const _ of $1) if (ctx.config.n === 66) throw new Error("sixty-six");',
    );
    const { fleet, store, worker } = await setUp({ slots: 4 }, { "a.auto.ts": CRASHING });
    const heard: unknown[] = [];
    const events = store.events.subscribe({ pattern: "fleet.config.*" }, (event) => heard.push(event.topic));
    await events.ready;
    const before = await statuses(store);
    const set = await fleet("config", "set", "live", "n=66", "--canary", "50%");
    expect(set.stdout).toContain("Slots 0 to 1 are to try it");
    await vi.waitFor(async () => {
      expect((await store.registry.view()).desired["live"]?.canary).toBeNull();
    }, WAIT);
    const after = await followed(store, 4);
    expect(after.slice(2).map(runOf)).toEqual(before.slice(2).map(runOf));
    expect(
      after
        .slice(0, 2)
        .map(({ restarts }) => restarts)
        .reduce((a, b) => a + b),
    ).toBeGreaterThan(1);
    expect(worker.stdout()).not.toMatch(/^has [23] 66/m);
    expect(said(worker.stdout())[0]).toMatch(/^0 /);
    const stopped = (await configHistory(store, "live")).find(({ by }) => by === "fleet");
    expect(stopped?.note).toMatch(/^canary stopped: \d+ crashes in the 2 slots on trial/);
    await vi.waitFor(() => expect(heard).toContain("fleet.config.canary-stopped"), WAIT);
    expect(heard).toContain("fleet.config.patched");
    await events.close();
  });

  test("a canary that its slot refuses is taken back by itself, and nothing is restarted", async () => {
    const { fleet, store, worker } = await setUp({ slots: 2, config: { n: 1 } }, { "a.auto.ts": LIVE });
    const before = await statuses(store);
    // The published schema lets thirteen pass.
    const set = await fleet("config", "set", "live", "n=13", "--canary", "1");
    expect(set.stdout).toContain("Slot 0 is to try it");
    await vi.waitFor(async () => {
      expect((await store.registry.view()).desired["live"]?.canary).toBeNull();
    }, WAIT);
    const after = await followed(store, 2);
    expect(after.map(runOf)).toEqual(before.map(runOf));
    expect(said(worker.stdout())).toEqual({ 0: "1 all", 1: "1 all" });
    const stopped = (await configHistory(store, "live")).find(({ by }) => by === "fleet");
    expect(stopped?.note).toMatch(
      /^canary stopped: 1 of the 1 slot on trial does not take its config; slot 0: .*bad luck/,
    );
    expect((await fleet("status")).stdout).toContain("thirteen brings bad luck");
  });

  test("secrets by reference reach the code, and nothing else", async () => {
    const SECRET = "hunter2-from-the-environment";
    const FROM_FILE = "hunter3-from-a-file";
    const USER = `
import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { defineContinuous } from "fleet-framework";
import { z } from "zod";
export default defineContinuous("user", {
  config: z.object({ key: z.string().refine((key) => !key.includes("forbidden"), { error: (issue) => "not " + issue.input }).default("none"), file: z.string().default("none"), n: z.number().default(0) }),
  async onConfig(config, ctx) {
    const hash = (text) => createHash("sha256").update(text).digest("hex");
    appendFileSync("hashes", [hash(config.key), hash(config.file)].join(" ") + "\\n");
    ctx.log.info("now with " + config.key, { key: config.key, file: [config.file] });
    if (config.n === 1) throw new Error("cannot use " + config.key);
  },
  async runSlot(ctx) {
    for await (const _ of ctx.loop({ everySeconds: 0.05 }))
      if (ctx.config.n === 2) throw new Error("401 for " + ctx.config.key + " and " + ctx.config.file);
  },
});`;
    const { cwd, fleet, store, worker } = await setUp(
      { slots: 1, name: "user" },
      { "user.auto.ts": USER, secret: `${FROM_FILE}\n` },
      { env: { API_KEY: SECRET, BAD_KEY: `forbidden-${SECRET}` } },
    );
    const set = (...changes: string[]) => fleet("config", "set", "user", ...changes, "--wait", "20");
    const outputs: string[] = [];
    const say = async (result: Promise<{ stdout: string; stderr: string; code: number | null }>) => {
      const { stdout, stderr, code } = await result;
      outputs.push(stdout, stderr);
      return { code, text: stdout + stderr };
    };
    expect(await say(set("key=env:API_KEY", `file=file:${join(cwd, "secret")}`))).toMatchObject({ code: 0 });
    const hash = (text: string) => createHash("sha256").update(text).digest("hex");
    expect(readFileSync(join(cwd, "hashes"), "utf8")).toBe(`${hash(SECRET)} ${hash(FROM_FILE)}\n`);

    // A variable that is not there is named with its field; Fleet's own are refused at once.
    const missing = await say(fleet("config", "set", "user", "key=env:NO_SUCH_KEY", "--wait", "2"));
    expect(missing.text).toContain("key: env:NO_SUCH_KEY: there is no such variable");
    const patch = (changes: object) => patchConfig(store, "user", { patch: changes }, { by: "jo" });
    const refused = async (changes: object, reason: string) => {
      await patch(changes);
      await vi.waitFor(async () => {
        expect((await statuses(store, "user"))[0]?.rejected?.reason).toContain(reason);
      }, WAIT);
    };
    await expect(patch({ key: "env:FLEET_TOKEN" })).rejects.toThrow("variables of Fleet's own");
    // Refused by the schema, by onConfig, and thrown by the run.
    await refused({ key: "env:BAD_KEY" }, "key: not env:BAD_KEY");
    await refused({ key: "env:API_KEY", n: 1 }, "cannot use env:API_KEY");
    await patch({ n: 2 });
    const [crashed] = await vi.waitFor(async () => {
      const found = await statuses(store, "user");
      expect(found[0]?.lastError).toContain("401 for env:API_KEY");
      return found;
    }, WAIT);
    expect(crashed?.lastError).toContain("and file:");
    for (const args of [
      ["status", "--json"],
      ["config", "get", "user"],
      ["config", "history", "user", "--json"],
    ])
      expect(await say(fleet(...args))).toMatchObject({ code: 0 });
    const { registry } = store;
    const kept = await Promise.all([
      registry.view(),
      registry.slotHealth(),
      registry.manifests(),
      registry.configHistory({ name: "user", limit: 100 }),
    ]);
    expect(worker.stdout() + worker.stderr()).toContain("now with env:API_KEY");
    const everything = [...outputs, worker.stdout(), worker.stderr(), JSON.stringify(kept)].join("\n");
    expect(everything).toContain("env:API_KEY");
    expect(everything).not.toContain(SECRET);
    expect(everything).not.toContain(FROM_FILE);
  });
});
