import { describe, expect, it } from "vitest";
import { isName } from "../contracts/name.ts";
import { openStore } from "../store/open.ts";
import { defaultWorkerId, enter } from "./identity.ts";

describe("defaultWorkerId", () => {
  it("is the same for one host and folder, and differs for others", () => {
    expect(defaultWorkerId("/x/.fleet", "h1")).toBe(defaultWorkerId("/x/../x/.fleet", "h1"));
    expect(defaultWorkerId("/x/.fleet", "h1")).not.toBe(defaultWorkerId("/y/.fleet", "h1"));
    expect(defaultWorkerId("/x/.fleet", "h1")).toMatch(/^h1-[0-9a-f]{6}$/);
  });

  it.each(["MacBook-Pro.local", "höst", "---", "", "x".repeat(300), "日本"])(
    "is a name on the host %j",
    (host) => {
      expect(isName(defaultWorkerId("/x", host))).toBe(true);
    },
  );
});

describe("enter", () => {
  const info = (incarnation: string) => ({
    incarnation,
    host: "h",
    pid: 1,
    version: "0",
    startedAt: 0,
    capacity: 1,
    labels: {},
    automations: [],
    draining: false,
  });

  it("takes the next free suffix beside live workers, and a free one again", async () => {
    const store = await openStore("sqlite::memory:");
    const { registry } = store;
    const come = (incarnation: string, id?: string) =>
      enter({ registry, info: info(incarnation), manifests: [], ttlMs: 60_000, id, dataDir: "/x" });
    const ids = [];
    for (const incarnation of ["1", "2", "3"]) ids.push((await come(incarnation)).id);
    const base = defaultWorkerId("/x");
    expect(ids).toEqual([base, `${base}-2`, `${base}-3`]);
    await registry.deregister({ workerId: `${base}-2`, incarnation: "2" });
    expect((await come("4")).id).toBe(`${base}-2`);

    expect((await come("5", "mine")).id).toBe("mine");
    // Heard of again meanwhile: it lives, so whoever wants its id is refused.
    const beat = { workerId: "mine", incarnation: "5", ttlMs: 60_000, leaseMs: 60_000, leases: [] };
    const heart = setInterval(() => void registry.beat(beat), 20);
    await expect(come("6", "mine")).rejects.toMatchObject({
      code: "FLEET_WORKER_ID_TAKEN",
      message: expect.stringContaining('"mine" already (host h, process 1)') as string,
    });
    clearInterval(heart);
    await expect(come("7", "Not A Name")).rejects.toMatchObject({ code: "FLEET_NAME_INVALID" });
    await store.close();
  });

  it("gives an id back at once to one whose predecessor's process is gone, and later where that cannot be seen", async () => {
    const store = await openStore("sqlite::memory:");
    const { registry } = store;
    const come = (incarnation: string, pid: number, processTable: string, ttlMs: number) =>
      enter({
        registry,
        info: { ...info(incarnation), pid, processTable },
        manifests: [],
        ttlMs,
        id: "mine",
        dataDir: "/x",
      });
    const slots = [{ automation: "a", slotId: 0 }];
    const claim = (incarnation: string) =>
      registry.claimSlots({ workerId: "mine", incarnation, leaseMs: 60_000, slots });

    await come("1", 2 ** 22 + 7, "here", 60_000); // No such process.
    expect(await claim("1")).toHaveLength(1);
    const began = performance.now();
    await come("2", process.pid, "here", 60_000);
    expect(performance.now() - began).toBeLessThan(5000);
    // What its predecessor held is free as well.
    expect(await claim("2")).toHaveLength(1);

    await registry.deregister({ workerId: "mine", incarnation: "2" });
    await come("3", 2 ** 22 + 7, "elsewhere", 600);
    await come("4", process.pid, "here", 600);
    expect((await registry.view()).workers).toMatchObject([{ id: "mine", incarnation: "4", generation: 4 }]);
    await store.close();
  });
});
