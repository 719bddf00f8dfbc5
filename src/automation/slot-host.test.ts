import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { machineMs } from "../internal/timers.ts";
import type { FromHost } from "../protocol/host.ts";
import { openStore } from "../store/open.ts";
import { defineContinuous } from "./definition.ts";
import { SlotHost, type SlotHostParts } from "./slot-host.ts";

const SOON = 60_000;

/** A host whose slots 0 and 1 have leases; it ends with the test. */
function hostOf(
  parts: Pick<SlotHostParts, "automation" | "store"> &
    Partial<Pick<SlotHostParts, "leasedUntil">> & { said: FromHost[] },
): SlotHost {
  const { said, ...more } = parts;
  const host = new SlotHost({
    worker: "w",
    holder: "w.1",
    leaseMs: 1000,
    marks: { slot: () => undefined, task: () => undefined },
    say: (message) => void said.push(message),
    onClosed: () => undefined,
    ...more,
  });
  onTestFinished(() => host.revoke());
  host.hear({ type: "leases", until: { 0: machineMs() + SOON, 1: machineMs() + SOON } });
  return host;
}

/** Two slots of one process that emit as fast as they can, and what is heard of them. */
async function twoSlots(leasedUntil?: (slotId: number) => number) {
  const store = await openStore("sqlite::memory:");
  onTestFinished(() => store.close());
  const said: FromHost[] = [];
  const emitted = [0, 0];
  const refused: string[][] = [[], []];
  const automation = defineContinuous("a", {
    output: z.object({ slot: z.number() }),
    async runSlot(ctx) {
      const emit = () =>
        ctx.emit({ slot: ctx.slotId }).then(
          () => (emitted[ctx.slotId] = (emitted[ctx.slotId] ?? 0) + 1),
          (error: { code: string }) => refused[ctx.slotId]?.push(error.code),
        );
      for await (const _ of ctx.loop()) await emit();
      // Code that overlooks its signal.
      await emit();
    },
  });
  const host = hostOf({ automation, store, said, ...(leasedUntil === undefined ? {} : { leasedUntil }) });
  for (const slotId of [0, 1])
    host.hear({ type: "run", slotId, token: "1", slotCount: 2, config: {}, configKey: "{}" });
  await vi.waitFor(() => expect(Math.min(...emitted)).toBeGreaterThan(2));
  const ended = () => said.filter(({ type }) => type === "ended");
  const goesOn = async (slotId: number) => {
    const before = emitted[slotId] ?? 0;
    await vi.waitFor(() => expect(emitted[slotId]).toBeGreaterThan(before + 5));
  };
  return { host, store, emitted, refused, ended, goesOn };
}

describe("SlotHost", () => {
  it("stops the slot whose lease is not sure any more, and no other one of its process", async () => {
    const { host, refused, ended, goesOn } = await twoSlots();
    host.hear({ type: "leases", until: { 0: 0 } });
    await vi.waitFor(() =>
      expect(ended()).toEqual([{ type: "ended", slotId: 0, outcome: "stopped", error: null }]),
    );
    expect(new Set(refused[0])).toEqual(new Set(["FLEET_LEASE_LOST"]));
    await goesOn(1);
    expect(ended()).toHaveLength(1);
    // Not one push of it was lost with those that travelled beside it.
    expect(refused[1]).toEqual([]);
  });

  it("lets go of what waits for the store when all its leases end, also of what was sent just before, and not sooner", async () => {
    const { host, store, ended, goesOn } = await twoSlots();
    const letGo: number[] = [];
    store.letGo = () => void letGo.push(machineMs());
    host.hear({ type: "leases", until: { 0: 0 } });
    await vi.waitFor(() => expect(ended()).toHaveLength(1));
    await goesOn(1);
    expect(letGo).toEqual([]);
    const end = machineMs() + 400;
    host.hear({ type: "leases", until: { 1: end } });
    await vi.waitFor(() => expect(letGo.at(-1)).toBeGreaterThan(end));
    expect(ended()).toHaveLength(2);
    expect(letGo[0]).toBeLessThan(end);
  });

  it("looks what its supervisor has noted before it stops a slot whose time is over by what it has heard", async () => {
    const noted = new Map([
      [0, machineMs() + SOON],
      [1, 0],
    ]);
    const { host, ended, goesOn } = await twoSlots((slotId) => noted.get(slotId) ?? 0);
    host.hear({ type: "leases", until: { 0: machineMs() - 1, 1: machineMs() - 1 } });
    await vi.waitFor(() =>
      expect(ended()).toEqual([{ type: "ended", slotId: 1, outcome: "stopped", error: null }]),
    );
    await goesOn(0);
  });

  it.each(["took", "refused"])(
    "says nothing of a config that a run %s which is over by then",
    async (how) => {
      const store = await openStore("sqlite::memory:");
      onTestFinished(() => store.close());
      const said: FromHost[] = [];
      let answer: (() => void) | undefined;
      const automation = defineContinuous("a", {
        config: z.object({ n: z.number() }),
        onConfig: ({ n }) =>
          new Promise((resolve, reject) => {
            if (n !== 2) resolve();
            else answer = () => (how === "took" ? resolve() : reject(new Error("no")));
          }),
        async runSlot(ctx) {
          for await (const _ of ctx.loop({ everySeconds: 0.01 }));
        },
      });
      const host = hostOf({ automation, store, said });
      const run = (n: number) =>
        host.hear({ type: "run", slotId: 0, token: "1", slotCount: 1, config: { n }, configKey: `n${n}` });
      const offer = (n: number) =>
        host.hear({
          type: "config",
          slotId: 0,
          config: { n },
          configKey: `n${n}`,
          generation: n,
          live: true,
        });
      const heard = (type: FromHost["type"], times: number) =>
        vi.waitFor(() => expect(said.filter((message) => message.type === type)).toHaveLength(times));
      run(1);
      await heard("running", 1);
      offer(2);
      await vi.waitFor(() => expect(answer).toBeDefined());
      host.hear({ type: "stop", slotId: 0, reason: "scaled", now: false });
      await heard("ended", 1);
      run(3);
      await heard("running", 2);
      answer?.();
      // The next offer is heard after it, and is for the run that there is now.
      offer(4);
      await heard("config-applied", 1);
      const told = said.filter(({ type }) => type.startsWith("config-"));
      expect(told).toEqual([{ type: "config-applied", slotId: 0, configKey: "n4", generation: 4 }]);
    },
  );

  it("lets nothing of any slot reach the store once it is revoked", async () => {
    const { host, emitted, refused, ended } = await twoSlots(() => machineMs() + SOON);
    host.revoke();
    await vi.waitFor(() => expect(ended()).toHaveLength(2));
    for (const codes of refused) expect(new Set(codes)).toEqual(new Set(["FLEET_LEASE_LOST"]));
    const last = [...emitted];
    host.hear({ type: "leases", until: { 0: machineMs() + SOON } });
    await turn();
    expect(emitted).toEqual(last);
  });

  it("sends no more of a log line than its supervisor can do with, and nothing that it could not", async () => {
    const store = await openStore("sqlite::memory:");
    onTestFinished(() => store.close());
    const said: FromHost[] = [];
    const long = "https://x,".repeat(100_000);
    const circle: Record<string, unknown> = { big: 1n, long, error: new Error("redis://:S3CRET-x@h") };
    circle.self = circle;
    const automation = defineContinuous("a", {
      async runSlot(ctx) {
        ctx.log.info(`m ${long} redis://:S3CRET-x@h`, {
          circle,
          many: Array.from({ length: 1000 }, () => long),
        });
        ctx.log.info({ no: "text" } as unknown as string);
        await ctx.sleep(60);
      },
    });
    const host = hostOf({ automation, store, said });
    host.hear({ type: "run", slotId: 0, token: "1", slotCount: 1, config: {}, configKey: "{}" });
    const logged = () => said.filter((message) => message.type === "log");
    await vi.waitFor(() => expect(logged()).toHaveLength(2));
    for (const message of logged()) expect(JSON.stringify(message).length).toBeLessThan(120_000);
    expect(JSON.stringify(logged())).not.toContain("S3CRET-x");
    expect(logged()[0]).toMatchObject({ fields: { automation: "a", slot: 0, circle: { big: "1" } } });
    expect(logged()[1]).toMatchObject({ message: "[object Object]" });
  });
});
