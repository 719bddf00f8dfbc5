// Short settings; part of `npm test`. Subscriptions over long cuts and over a subscriber that stood still (field cases
// 21 and 22).
import { createClient } from "@redis/client";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { BusEvent } from "../src/protocol/event.ts";
import { range, until } from "../src/store/conformance/harness.ts";
import { openStore } from "../src/store/open.ts";
import { type Children, prepareChildren } from "./support/children.ts";
import type { SubscriberInput, SubscriberMessage } from "./support/children/subscriber.ts";
import { startProxy } from "./support/proxy.ts";
import { startRedis } from "./support/redis.ts";
import { freshNamespace, openShort } from "./support/stores.ts";

const TOPICS = ["one", "two", "three"];
const PATTERNS = ["p.*", "q.*"];

describe("21: subscriptions over ten failed reconnects", () => {
  // A refused connection is tried again soon; a silent one has to be found out first.
  for (const [fault, within] of [
    ["refuse", 1500],
    ["hole", 6000],
  ] as const) {
    it(`all five come back (${fault})`, { timeout: 60_000 }, async () => {
      const namespace = freshNamespace();
      const proxy = await startProxy(Number(new URL(inject("redisUrl")).port));
      const direct = await openStore(inject("redisUrl"), { namespace });
      const store = await openShort(proxy.url, { namespace, deadlineSeconds: 1 });
      try {
        const inboxes = await Promise.all(
          [...TOPICS, ...PATTERNS].map(async (pattern) => {
            const events: BusEvent[] = [];
            const watch = store.events.subscribe({ pattern }, (event) => events.push(event));
            await watch.ready;
            return { events, topic: pattern.replace("*", "x"), close: () => watch.close() };
          }),
        );
        const publish = (payload: string) =>
          Promise.all(inboxes.map(({ topic }) => direct.events.publish({ topic, source: "s", payload })));
        await publish('"before"');
        await until("all five before the cut", () => inboxes.every(({ events }) => events.length === 1));

        if (fault === "hole") proxy.blackHole();
        else proxy.refuse();
        if (fault === "refuse") proxy.cut();
        await publish('"during"');
        if (fault === "refuse")
          await until("ten failed reconnects", () => proxy.counts.refused >= 10, 30_000);
        else
          await until("bytes swallowed on several connections", () => proxy.counts.swallowed > 200, 30_000);
        expect(inboxes.map(({ events }) => events.length)).toEqual([1, 1, 1, 1, 1]);

        proxy.heal();
        const healed = performance.now();
        let sent = 0;
        await until(
          "all five after the heal",
          async () => {
            await publish('"after"');
            sent += 1;
            return inboxes.every(({ events }) => events.length > 1);
          },
          15_000,
        );
        expect(performance.now() - healed).toBeLessThan(within);
        // The seqs say exactly what was missed: one of the time in between, and those before each came back.
        for (const { events } of inboxes) {
          expect(events[0]).toMatchObject({ seq: 1, payload: "before" });
          expect(events[1]?.payload).toBe("after");
          const after = events.slice(1).map(({ seq }) => seq);
          expect(after).toEqual(range(after[0] as number, (after[0] as number) + after.length));
          expect(after[0]).toBeGreaterThan(2);
          expect(after[0]).toBeLessThanOrEqual(2 + sent);
        }
        await Promise.all(inboxes.map((inbox) => inbox.close()));
      } finally {
        await store.close();
        await proxy.close();
        await direct.wipe();
        await direct.close();
      }
    });
  }
});

describe("22: a subscriber that stands still", () => {
  let children: Children;

  beforeAll(async () => {
    children = await prepareChildren();
  });
  afterAll(() => children.dispose());

  it(
    "receives again within 5 s of going on, and missed = published - received",
    { timeout: 60_000 },
    async () => {
      // A small limit, so that the server drops the subscriber soon.
      const server = await startRedis({ args: ["--client-output-buffer-limit", "pubsub 200000 0 0"] });
      const admin = await createClient({ url: server.url })
        .on("error", () => undefined)
        .connect();
      const store = await openStore(server.url, { namespace: "n" });
      const subscribers = () => admin.sendCommand<number>(["PUBSUB", "NUMPAT"]);
      try {
        let published = 0;
        const publish = async (payload: unknown) => {
          await store.events.publish({ topic: "t", source: "s", payload: JSON.stringify(payload) });
          published += 1;
        };
        await publish("before it subscribed");
        const before = await subscribers();
        const input: SubscriberInput = { url: server.url, namespace: "n", pattern: "t*" };
        const child = children.start<SubscriberMessage>("subscriber", input);
        await child.next((message): message is { ready: true } => "ready" in message);
        expect(await subscribers()).toBe(before + 1);
        published = 0;
        await publish("first");
        const last = () => child.messages.filter((message) => "received" in message).at(-1);
        await until("the first event", () => last()?.received === 1);

        child.kill("SIGSTOP");
        const large = "x".repeat(60_000);
        for (let i = 0; i < 2000 && (await subscribers()) > before; i++) await publish(large);
        expect(await subscribers()).toBe(before);
        for (const _ of range(0, 10)) await publish("while it is not there");

        child.kill("SIGCONT");
        const woken = performance.now();
        await until(
          "an event published after it went on",
          async () => {
            await publish("after");
            return last()?.lastPayload === "after";
          },
          10_000,
        );
        expect(performance.now() - woken).toBeLessThan(5000);
        await publish("last");
        await until("the last event", () => last()?.lastPayload === "last");
        const { received, missed } = last() as { received: number; missed: number };
        expect(missed).toBeGreaterThanOrEqual(10);
        expect(received + missed).toBe(published);
      } finally {
        admin.destroy();
        await store.close();
        await server.stop();
      }
    },
  );
});
