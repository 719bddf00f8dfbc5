// `fleet stream`, `fleet status` and `fleet wipe` on both stores.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { entryTemplate } from "../src/protocol/envelope.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { makeProject, runFleet, startFleet, writeInto } from "./support/cli.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 90_000 });

interface Case {
  cwd: string;
  store: Store;
  fleet: (...args: string[]) => ReturnType<typeof runFleet>;
  env: Record<string, string>;
}

/** A store of its own, seen by this process and by the commands. */
async function open(kind: "sqlite" | "redis"): Promise<Case> {
  const cwd = makeProject();
  const namespace = `t${randomUUID().slice(0, 8)}`;
  const url = kind === "redis" ? inject("redisUrl") : `sqlite:${cwd}/fleet.db`;
  const store = await openStore(url, { namespace });
  onTestFinished(async () => {
    await store.wipe();
    await store.close();
  });
  const env = { FLEET_STORE: url, FLEET_NAMESPACE: namespace };
  return { cwd, store, env, fleet: (...args) => runFleet(args, { cwd, env }) };
}

let producers = 0;
async function push(
  store: Store,
  stream: string,
  payloads: readonly unknown[],
  maxLength = 100,
): Promise<void> {
  const bounds = { maxLength, ttlMs: 3_600_000, maxPayloadBytes: 1000 };
  await store.streams.declare({ stream, bounds, as: "owner" });
  const entries = payloads.map((payload, i) => entryTemplate(`id-${i}`, 0, JSON.stringify(payload)));
  const op = { producer: `test-${++producers}`, seq: 1 };
  expect(await store.streams.push({ stream, entries, op })).toMatchObject({ outcome: "pushed" });
}

const lines = (text: string) => text.split("\n").filter((line) => line !== "");

describe.each(["sqlite", "redis"] as const)("%s", (kind) => {
  test("peek shows, pop takes, both exactly as stored", async () => {
    const { store, fleet } = await open(kind);
    await push(store, "pinger", [{ n: 1 }, { n: 2 }, { n: 3 }]);
    const raw = (await store.streams.peek({ stream: "pinger", n: 10 })).map((entry) => entry.raw);
    expect(await fleet("stream", "peek", "pinger")).toEqual({
      code: 0,
      stdout: `${raw.join("\n")}\n`,
      stderr: "",
    });
    expect(lines((await fleet("stream", "pop", "pinger")).stdout)).toEqual(raw.slice(0, 1));
    const popped = await fleet("stream", "pop", "pinger", "-n", "5", "--json");
    expect(JSON.parse(popped.stdout)).toEqual(raw.slice(1).map((text) => JSON.parse(text) as unknown));
    expect(Object.keys(JSON.parse(raw[0] as string) as object)).toEqual(["id", "slot_id", "ts", "payload"]);
    expect(await fleet("stream", "length", "pinger")).toEqual({ code: 0, stdout: "0\n", stderr: "" });
    expect(await fleet("stream", "pop", "pinger")).toEqual({ code: 0, stdout: "", stderr: "" });
    expect((await fleet("stream", "pop", "pinger", "--json")).stdout).toBe("[]\n");
  });

  test("ls shows bounds and counters", async () => {
    const { store, fleet } = await open(kind);
    await push(store, "pinger", [1, 2, 3, 4, 5], 3);
    await store.streams.pop({ stream: "pinger", n: 1 });
    const { stdout } = await fleet("stream", "ls", "--json");
    expect(JSON.parse(stdout)).toMatchObject([
      {
        name: "pinger",
        length: 2,
        max_length: 3,
        ttl_seconds: 3600,
        pushed: 5,
        popped: 1,
        trimmed: 2,
        expired: 0,
        invalid: 0,
      },
    ]);
    const text = await fleet("stream", "ls");
    expect(lines(text.stdout)[0]).toMatch(
      /^STREAM +LENGTH +MAX +OLDEST +PUSHED +POPPED +TRIMMED +EXPIRED +INVALID$/,
    );
    expect(lines(text.stdout)[1]).toMatch(/^pinger +2 +3 +.* 5 +1 +2 +0 +0$/);
  });

  test("a stream that does not exist: exit 1, with the nearest name", async () => {
    const { store, fleet } = await open(kind);
    await push(store, "pinger", [1]);
    for (const command of ["peek", "pop", "tail", "length"]) {
      const result = await fleet("stream", command, "pingr");
      expect(result).toMatchObject({ code: 1, stdout: "" });
      expect(result.stderr).toContain('did you mean "pinger"?');
    }
  });

  test("pop --wait takes what comes later, and gives up in time", async () => {
    const { store, env, cwd, fleet } = await open(kind);
    await push(store, "pinger", []);
    const waiting = startFleet(["stream", "pop", "pinger", "--wait", "20"], { cwd, env });
    const early = await fleet("stream", "pop", "pinger", "--wait", "0.2");
    expect(early).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(waiting.stdout()).toBe("");
    await push(store, "pinger", [{ n: 7 }]);
    expect(await waiting.ended).toBe(0);
    expect(lines(waiting.stdout())).toEqual([expect.stringContaining('"payload":{"n":7}')]);
  });

  test("tail shows the newest, follows, takes nothing, and ends cleanly", async () => {
    const { store, env, cwd } = await open(kind);
    await push(store, "pinger", [1, 2, 3]);
    const tail = startFleet(["stream", "tail", "pinger", "-n", "2"], { cwd, env });
    await tail.until((text) => text.includes('"payload":3'));
    await push(store, "pinger", [4]);
    await tail.until((text) => text.includes('"payload":4'));
    expect(lines(tail.stdout()).map((line) => (JSON.parse(line) as { payload: number }).payload)).toEqual([
      2, 3, 4,
    ]);
    expect(await store.streams.length({ stream: "pinger" })).toBe(4);
    tail.signal("SIGINT");
    expect(await tail.ended).toBe(0);
    expect(tail.stderr()).toBe("");
  });

  test("with --json, what another program has written that is no JSON comes as a text", async () => {
    const { store, env, cwd, fleet } = await open(kind);
    await push(store, "pinger", [1]);
    const entries = [{ id: "x", head: 'no "JSON","ts":', tail: "\nat all" }];
    await store.streams.push({ stream: "pinger", entries, op: { producer: "other", seq: 1 } });
    const [first = "", second = ""] = (await store.streams.peek({ stream: "pinger", n: 2 })).map(
      ({ raw }) => raw,
    );
    const shown = [first, JSON.stringify(second)];
    const tail = startFleet(["stream", "tail", "pinger", "-n", "2", "--json"], { cwd, env });
    await tail.until(() => tail.stdout().includes("at all"));
    tail.signal("SIGINT");
    expect(await tail.ended).toBe(0);
    expect(tail.stdout()).toBe(`${shown.join("\n")}\n`);
    expect((await fleet("stream", "peek", "pinger", "--json")).stdout).toBe(`[${shown.join(",")}]\n`);
    expect((await fleet("stream", "pop", "pinger", "-n", "2", "--json")).stdout).toBe(
      `[${shown.join(",")}]\n`,
    );
  });

  test("control characters in an entry reach no terminal, and its JSON stays what it is", async () => {
    const { store, env, cwd, fleet } = await open(kind);
    const payload = { text: "\u009b31m red \u007f", "\u0090key": 1 };
    await push(store, "pinger", [payload]);
    const entries = [{ id: "x", head: "\u001b[2J no JSON ", tail: "\nforged" }];
    await store.streams.push({ stream: "pinger", entries, op: { producer: "other", seq: 1 } });
    const tail = startFleet(["stream", "tail", "pinger", "-n", "2"], { cwd, env });
    await tail.until((text) => text.includes("forged"));
    tail.signal("SIGINT");
    await tail.ended;
    const peek = (await fleet("stream", "peek", "pinger")).stdout;
    const json = (await fleet("stream", "peek", "pinger", "--json")).stdout;
    const popped = (await fleet("stream", "pop", "pinger", "-n", "2")).stdout;
    for (const text of [tail.stdout(), peek, popped]) {
      const [first = "", second] = lines(text);
      expect((JSON.parse(first) as { payload: unknown }).payload).toEqual(payload);
      expect(second).toMatch(/^\\u001b\[2J no JSON \d+\\nforged$/);
    }
    expect((JSON.parse(json) as { payload: unknown }[])[0]?.payload).toEqual(payload);
    // oxlint-disable-next-line no-control-regex
    const controls = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;
    for (const text of [tail.stdout(), peek, popped, json]) expect(text).not.toMatch(controls);
  });

  test("status without workers", async () => {
    const { store, fleet } = await open(kind);
    const { code, stdout } = await fleet("status", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ fleet: store.fleetId, workers: [], automations: [] });
    expect((await fleet("status")).stdout).toContain("No worker has registered");
  });

  test("wipe asks, refuses while a worker lives, and spares other namespaces", async () => {
    const { store, env, cwd, fleet } = await open(kind);
    const other = await openStore(env.FLEET_STORE as string, { namespace: `${env.FLEET_NAMESPACE}-other` });
    onTestFinished(async () => {
      await other.wipe();
      await other.close();
    });
    await push(store, "pinger", [1]);
    await push(other, "pinger", [1]);

    const unasked = await fleet("wipe");
    expect(unasked).toMatchObject({ code: 2, stdout: "" });
    expect(unasked.stderr).toContain(`namespace "${env.FLEET_NAMESPACE}"`);

    const worker = {
      id: "w1",
      incarnation: "i1",
      host: "h",
      pid: 1,
      version: "1",
      startedAt: 1,
      capacity: 1,
      labels: {},
      automations: [],
      draining: false,
    };
    await store.registry.register({ worker, manifests: [], ttlMs: 60_000 });
    const refused = await fleet("wipe", "--yes");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain("w1");
    expect(await store.streams.length({ stream: "pinger" })).toBe(1);

    const done = await runFleet(["wipe", "--yes", "--force", "--json"], { cwd, env });
    expect(done).toMatchObject({ code: 0, stderr: "" });
    expect((JSON.parse(done.stdout) as { deleted: number }).deleted).toBeGreaterThan(0);
    expect((await fleet("stream", "ls", "--json")).stdout).toBe("[]\n");
    expect(await other.streams.length({ stream: "pinger" })).toBe(1);
  });
});

test("a reader that goes away ends the command quietly", async () => {
  const { cwd, env, store } = await open("sqlite");
  await push(
    store,
    "pinger",
    Array.from({ length: 5000 }, (_, n) => ({ n, fill: "x".repeat(100) })),
    10_000,
  );
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL("../bin/fleet.js", import.meta.url)), "stream", "peek", "pinger", "-n", "5000"],
    { cwd, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] },
  );
  let stderr = "";
  child.stderr.on("data", (chunk) => (stderr += String(chunk)));
  child.stdout.destroy();
  const [code] = (await once(child, "close")) as [number | null];
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
});

test("flag goes before environment, environment before config file", async () => {
  const { cwd, store } = await open("sqlite");
  await push(store, "pinger", [1]);
  writeInto(
    cwd,
    "fleet.config.ts",
    `import { defineConfig } from "fleet-framework";
     export default defineConfig({ automations: ["*.ts"], store: "sqlite:fleet.db", namespace: "${store.namespace}" });`,
  );
  const names = async (args: string[], env: Record<string, string> = {}) =>
    (JSON.parse((await runFleet(["stream", "ls", "--json", ...args], { cwd, env })).stdout) as unknown[])
      .length;
  const own = store.namespace;
  const counted = await Promise.all([
    names([]),
    names(["--namespace", "other"]),
    names([], { FLEET_NAMESPACE: "other" }),
    names(["--namespace", own], { FLEET_NAMESPACE: "other" }),
    // The config's namespace counts also where the store is named by hand.
    names(["--store", "sqlite:fleet.db"]),
  ]);
  expect(counted).toEqual([1, 0, 0, 1, 1]);
  const elsewhere = await runFleet(["stream", "ls"], { cwd, env: { FLEET_STORE: "sqlite:gone.db" } });
  expect(elsewhere.code).toBe(3);
  const byConfig = await runFleet(["stream", "length", "pinger", "--config", `${cwd}/fleet.config.ts`], {
    cwd: tmpdir(),
  });
  expect(byConfig.stdout).toBe("1\n");
});
