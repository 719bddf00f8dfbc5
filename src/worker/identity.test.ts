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
    for (const incarnation of ["1", "2", "3"]) ids.push((await come(incarnation)).worker.id);
    const base = defaultWorkerId("/x");
    expect(ids).toEqual([base, `${base}-2`, `${base}-3`]);
    await registry.deregister({ workerId: `${base}-2`, incarnation: "2" });
    expect((await come("4")).worker.id).toBe(`${base}-2`);

    expect((await come("5", "mine")).worker.id).toBe("mine");
    await expect(come("6", "mine")).rejects.toMatchObject({
      code: "FLEET_WORKER_ID_TAKEN",
      message: expect.stringContaining('"mine" already (host h, process 1)') as string,
    });
    await expect(come("7", "Not A Name")).rejects.toMatchObject({ code: "FLEET_NAME_INVALID" });
    await store.close();
  });
});
