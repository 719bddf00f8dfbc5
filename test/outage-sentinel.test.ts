// Short (`npm test`): a worker process with short times on a Redis that sentinels watch over, whose master is killed or replaced.
import { expect, onTestFinished, test, vi } from "vitest";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { measured, ms } from "./support/heal-fleet.ts";
import { allEmit, OUTAGE_SLOTS, type OnOutage, outage, workerOn } from "./support/outage.ts";
import { descendants } from "./support/processes.ts";
import {
  type RedisServer,
  type SentinelGroup,
  type SentinelOptions,
  startSentinels,
} from "./support/redis.ts";

const NAMESPACE = "out";

interface Place extends OnOutage {
  group: SentinelGroup;
  master: RedisServer;
  replica: RedisServer;
  store: Store;
}

async function place(options: SentinelOptions): Promise<Place> {
  const group = await startSentinels(options);
  onTestFinished(() => group.stop());
  const store = await openStore(group.url, { namespace: NAMESPACE, deadlineSeconds: 1 });
  onTestFinished(() => store.close());
  const on = await workerOn({ store, flags: ["--store", group.url, "--namespace", NAMESPACE] });
  const [master, replica] = group.servers;
  return { ...on, group, master, replica, store };
}

test.each(["SIGKILL", "SIGSTOP"] as const)(
  "the machine of the master goes (%s), and a sentinel with it: the replica is promoted, and every slot works again",
  async (signal) => {
    const { group, master, replica, store, worker } = await place({ convertMs: 1000 });
    // It is to give up before anybody can be promoted.
    const hasty = await openStore(group.url, { namespace: NAMESPACE, deadlineSeconds: 0.3 });
    onTestFinished(() => hasty.close());
    const begun = performance.now();
    let promoted = 0;
    const cost = await outage({
      name: `failover after ${signal}`,
      worker,
      store,
      ms: 0,
      breakIt: async () => {
        await master.kill(signal);
        await group.sentinels[0]?.kill(signal);
      },
      bites: () => expect(hasty.registry.view()).rejects.toMatchObject({ code: "FLEET_STORE_UNAVAILABLE" }),
      mend: async () => {
        expect((await group.untilMasterIsNot(master.port)).port).toBe(replica.port);
        promoted = performance.now() - begun;
      },
    });
    measured(`failover after ${signal}: promoted`, ms(promoted));
    measured(`failover after ${signal}: all slots work again after the promotion`, ms(cost.backMs));
    expect(worker.output()).toContain(`is 127.0.0.1:${replica.port} now`);
    if (signal === "SIGSTOP") return;

    // It comes back empty and as a master; nobody is to take it for the fleet's store until a sentinel makes it a replica.
    await master.start();
    expect(await roleOf(group, master)).toBe("master");
    await untilReplica(group, master);
    expect(await callsOf(group, master)).toBe(0);
    await allEmit(store, worker, 5000);
  },
  60_000,
);

test("a planned failover: nobody stays on the old master, and every slot works again", async () => {
  const { group, master, replica, store, worker } = await place({ sentinels: 1, convertMs: 5000 });
  const pids = [worker.pid, ...descendants(worker.pid)].toSorted((a, b) => a - b);
  const before = (await store.registry.view()).desired["ticker"];
  await group.failover();
  expect((await group.untilMasterIsNot(master.port)).port).toBe(replica.port);
  const promoted = performance.now();
  await vi.waitFor(async () => expect(await fleetConnections(group, master)).toBe(0), {
    timeout: 3000,
    interval: 10,
  });
  const left = performance.now() - promoted;
  // The fault: by its own word it still is a master, and whoever writes to it loses that.
  expect(await roleOf(group, master)).toBe("master");
  const calls = await callsOf(group, master);
  await allEmit(store, worker, 10_000);
  const back = performance.now() - promoted;
  measured("planned failover: the old master is left", ms(left));
  measured("planned failover: all slots work again", ms(back));
  expect(back).toBeLessThan(10_000);

  await untilReplica(group, master);
  expect(await callsOf(group, master)).toBe(calls);
  expect([worker.pid, ...descendants(worker.pid)].toSorted((a, b) => a - b)).toEqual(pids);
  const after = (await store.registry.view()).desired["ticker"];
  expect(after).toMatchObject({ slots: OUTAGE_SLOTS, generation: before?.generation });
  await allEmit(store, worker, 5000);
}, 60_000);

async function untilReplica(group: SentinelGroup, server: RedisServer): Promise<void> {
  await vi.waitFor(async () => expect(await roleOf(group, server)).toBe("slave"), {
    timeout: 20_000,
    interval: 100,
  });
}

async function roleOf(group: SentinelGroup, server: RedisServer): Promise<string> {
  const [role] = await group.ask<[string]>(server, "ROLE");
  return role;
}

/** Scripts that a server has run since its start: all that Fleet writes goes through them. What is replicated does not count. */
async function callsOf(group: SentinelGroup, server: RedisServer): Promise<number> {
  const stats = await group.ask<string>(server, "INFO", "commandstats");
  return [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce(
    (sum, [, calls]) => sum + Number(calls),
    0,
  );
}

async function fleetConnections(group: SentinelGroup, server: RedisServer): Promise<number> {
  const clients = await group.ask<string>(server, "CLIENT", "LIST");
  return (clients.match(/ name=fleet/g) ?? []).length;
}
