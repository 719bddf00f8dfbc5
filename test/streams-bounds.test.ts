// Short (`npm test`): whose bounds hold, what is counted, what a closing fleet still delivers, what a killed consumer loses.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { fleetOn, openFleet } from "../src/automation/fleet.ts";
import { defineStream } from "../src/contracts/stream.ts";
import { SILENT } from "../src/internal/log.ts";
import { Streams } from "../src/primitives/streams.ts";
import { openStore } from "../src/store/open.ts";
import { makeProject } from "./support/cli.ts";

const bounded = (maxLength: number) => defineStream("numbers", z.number(), { maxLength });

describe("bounds", () => {
  it("are the owner's: a guest's hold only while nobody owns the stream", async () => {
    const store = await openStore("sqlite::memory:");
    const streams = new Streams(store, { log: SILENT });
    const length = async () => (await store.streams.stats({ stream: "numbers" }))?.bounds.maxLength;
    await streams.handle(bounded(10)).push(1);
    expect(await length()).toBe(10);
    await streams.handle(bounded(99)).push(1);
    expect(await length()).toBe(10);
    await streams.emitter(bounded(5), 0, "owner").emit(1);
    expect(await length()).toBe(5);
    await new Streams(store, { log: SILENT }).handle(bounded(99)).push(1);
    expect(await length()).toBe(5);
    await store.close();
  });

  it("never leave more than maxLength entries, the newest of them, and count the rest as trimmed", async () => {
    const store = await openStore("sqlite::memory:");
    const fleet = fleetOn(store, { log: SILENT });
    const stream = fleet.stream(bounded(10));
    await Promise.all(Array.from({ length: 1000 }, (_, n) => stream.push(n)));
    expect(await stream.length()).toBe(10);
    expect(await store.streams.stats({ stream: "numbers" })).toMatchObject({
      pushed: 1000,
      trimmed: 990,
      popped: 0,
    });
    expect(await stream.pop({ n: 100 })).toEqual(Array.from({ length: 10 }, (_, i) => 990 + i));
    await fleet.close();
  });

  it("are written anew when the store has lost them", async () => {
    const store = await openStore("sqlite::memory:");
    const fleet = fleetOn(store, { log: SILENT });
    const stream = fleet.stream(bounded(10));
    await stream.push(1);
    await store.wipe();
    await stream.push(2);
    expect(await stream.pop({ n: 10 })).toEqual([2]);
    await fleet.close();
  });
});

describe("many pushes of one tick", () => {
  it("travel together and stay in order", async () => {
    const store = await openStore("sqlite::memory:");
    let calls = 0;
    const push: typeof store.streams.push = (args) => {
      calls += 1;
      return store.streams.push(args);
    };
    const counted = new Proxy(store.streams, {
      get: (target, key) => (key === "push" ? push : (Reflect.get(target, key) as () => unknown)),
    });
    const streams = new Streams({ ...store, streams: counted }, { log: SILENT });
    const emitter = streams.emitter(bounded(50_000), 3, "owner");
    await Promise.all(Array.from({ length: 2000 }, (_, n) => emitter.emit(n)));
    expect(calls).toBeLessThanOrEqual(40);
    expect(await streams.consumer(bounded(1)).pop({ n: 10_000 })).toEqual(
      Array.from({ length: 2000 }, (_, n) => n),
    );
    await emitter.emitMany([1, 2, 3]);
    expect((await streams.consumer(bounded(1)).popEnvelopes({ n: 10 })).map(({ slotId }) => slotId)).toEqual([
      3, 3, 3,
    ]);
    await store.close();
  });

  it("are all checked by emitMany before the first is written", async () => {
    const store = await openStore("sqlite::memory:");
    const streams = new Streams(store, { log: SILENT });
    const emitter = streams.emitter(bounded(10), 0, "owner");
    await expect(emitter.emitMany([1, 2, "x" as unknown as number, 4])).rejects.toThrow(/payload 2: /);
    expect(await store.streams.stats({ stream: "numbers" })).toBeUndefined();
    await store.close();
  });
});

describe("openFleet", () => {
  it("delivers at close what it has accepted, and closes once", async () => {
    const dir = makeProject();
    const url = `sqlite:${join(dir, "fleet.db")}`;
    const fleet = await openFleet({ store: url });
    const pushes = Array.from({ length: 3000 }, (_, n) => fleet.stream(bounded(50_000)).push(n));
    await Promise.all([fleet.close(), fleet.close()]);
    await Promise.all(pushes);
    await expect(Promise.resolve().then(() => fleet.stream(bounded(10)).push(1))).rejects.toMatchObject({
      code: "FLEET_CLOSED",
    });
    const again = await openFleet({ store: url });
    expect(await again.stream(bounded(10)).length()).toBe(3000);
    await again[Symbol.asyncDispose]();
  });

  it("refuses pops once it is closed, whether or not they would wait, and ends loops quietly", async () => {
    const fleet = await openFleet({ store: "sqlite::memory:" });
    const stream = fleet.stream(bounded(10));
    await stream.push(1);
    const waiting = fleet.stream(defineStream("others", z.number())).pop({ waitSeconds: 60 });
    const seen: unknown[] = [];
    for await (const payload of stream) {
      seen.push(payload);
      await fleet.close();
    }
    expect(seen).toEqual([1]);
    expect(await stream.next()).toBeUndefined();
    expect(await waiting).toEqual([]);
    for (const options of [undefined, { waitSeconds: 60 }, { waitSeconds: Number.POSITIVE_INFINITY }]) {
      await expect(stream.pop(options)).rejects.toMatchObject({ code: "FLEET_CLOSED" });
      await expect(stream.popEnvelopes(options)).rejects.toMatchObject({ code: "FLEET_CLOSED" });
    }
  });

  it("refuses what it cannot use", async () => {
    await expect(openFleet({} as { store: string })).rejects.toThrow("openFleet: store is missing");
    await expect(openFleet({ store: "mysql://x" })).rejects.toMatchObject({
      code: "FLEET_STORE_URL_INVALID",
    });
    await expect(openFleet({ stor: "x" } as object as { store: string })).rejects.toThrow(
      'did you mean "store"?',
    );
    await expect(openFleet({ store: "sqlite::memory:", namespace: "A:b" })).rejects.toMatchObject({
      code: "FLEET_NAME_INVALID",
    });
  });
});

describe("a consumer that is killed after a pop", () => {
  it("loses what it had popped, and the count of popped entries explains it", async () => {
    const dir = makeProject();
    const store = await openStore(`sqlite:${join(dir, "fleet.db")}`);
    const fleet = fleetOn(store, { log: SILENT });
    await Promise.all(Array.from({ length: 150 }, (_, n) => fleet.stream(bounded(1000)).push(n)));
    const code = `
      import { defineStream, openFleet } from "fleet-framework";
      import { z } from "zod";
      const fleet = await openFleet({ store: "sqlite:fleet.db" });
      const items = await fleet.stream(defineStream("numbers", z.number())).pop({ n: 100 });
      process.stdout.write(String(items.length), () => process.kill(process.pid, "SIGKILL"));
    `;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
      cwd: dir,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    child.stdout.on("data", (chunk) => (said += String(chunk)));
    const [, signal] = (await once(child, "close")) as [number | null, string | null];
    expect([said, signal]).toEqual(["100", "SIGKILL"]);
    expect(await store.streams.stats({ stream: "numbers" })).toMatchObject({
      pushed: 150,
      popped: 100,
      length: 50,
      trimmed: 0,
      expired: 0,
    });
    expect((await fleet.stream(bounded(10)).pop({ n: 1000 }))[0]).toBe(100);
    await fleet.close();
  });
});
