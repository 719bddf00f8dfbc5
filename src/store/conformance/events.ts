import { describe, expect } from "vitest";
import type { BusEvent } from "../../protocol/event.ts";
import type { Store } from "../store.ts";
import { HandClock, openThree, range, siteCase, type StoreHarness, until } from "./harness.ts";

interface Inbox {
  events: BusEvent[];
  seqs(topic: string): number[];
  topics(): string[];
  baselines: Promise<ReadonlyMap<string, number>>;
  close(): Promise<void>;
}

async function subscribe(store: Store, pattern: string): Promise<Inbox> {
  const events: BusEvent[] = [];
  const watch = store.events.subscribe({ pattern }, (event) => events.push(event));
  await watch.ready;
  return {
    events,
    seqs: (topic) => events.filter((event) => event.topic === topic).map(({ seq }) => seq),
    topics: () => events.map(({ topic }) => topic),
    baselines: watch.baselines,
    close: () => watch.close(),
  };
}

const publish = (store: Store, topic: string, payload: unknown = null) =>
  store.events.publish({ topic, source: "test/0", payload: JSON.stringify(payload) });

/** All that `EventStore` promises. */
export function eventConformance(harness: StoreHarness): void {
  describe("events", () => {
    siteCase(harness, "an event arrives whole, stamped by the store", async ({ open }) => {
      const clock = new HandClock();
      const [a, b] = await Promise.all([open(clock.options), open(clock.options)]);
      const inbox = await subscribe(b, "t");
      const payload = {
        tags: [],
        m: {},
        n: 1_781_234_567_890_123,
        text: "ü\u0000\ud800 🚀",
        nested: [[], {}],
      };
      expect(await publish(a, "t", payload)).toEqual({ seq: 1, ts: clock.ms });
      await until("the event", () => inbox.events.length === 1);
      expect(inbox.events).toEqual([
        { topic: "t", ts: clock.ms, source: "test/0", seq: 1, fleet: a.fleetId, payload },
      ]);
      await inbox.close();
    });

    siteCase(harness, "several events go out in one step, in their order", async ({ open }) => {
      const clock = new HandClock();
      const [a, b] = await Promise.all([open(clock.options), open(clock.options)]);
      const inbox = await subscribe(b, "*");
      const event = (topic: string, payload: unknown, source = "test/0") => ({
        topic,
        source,
        payload: JSON.stringify(payload),
      });
      expect(await a.events.publishMany({ events: [] })).toEqual([]);
      await publish(b, "t", "before");
      const ts = clock.ms;
      const answers = await a.events.publishMany({
        events: [
          event("t", "a"),
          event("t", "b"),
          event("t", { "}": "ü\u0000\ud800", "1": [] }, 'another "source"'),
          event("u", "c"),
          event("t", "d"),
        ],
      });
      expect(answers).toEqual([2, 3, 4, 1, 5].map((seq) => ({ seq, ts })));
      expect(await publish(b, "t", "after")).toEqual({ seq: 6, ts });
      await until("all events", () => inbox.events.length === 7);
      expect(inbox.events.map(({ topic, payload }) => [topic, payload])).toEqual([
        ["t", "before"],
        ["t", "a"],
        ["t", "b"],
        ["t", { "}": "ü\u0000\ud800", "1": [] }],
        ["u", "c"],
        ["t", "d"],
        ["t", "after"],
      ]);
      expect(inbox.seqs("t")).toEqual(range(1, 7));
      expect(inbox.events[3]).toMatchObject({ source: 'another "source"', seq: 4, fleet: a.fleetId });
      await inbox.close();
    });

    siteCase(harness, "calls of many events from several publishers leave no gap", async (site) => {
      const stores = await openThree(site);
      const inbox = await subscribe(stores[0], "*");
      const many = range(0, 100).map((n) => ({
        topic: n % 3 === 0 ? "u" : "t",
        source: `s${n % 5}`,
        payload: String(n),
      }));
      const answers = await Promise.all(
        stores.flatMap(({ events }) => range(0, 5).map(() => events.publishMany({ events: many }))),
      );
      await until("all events", () => inbox.events.length === 1500);
      expect(inbox.seqs("u")).toEqual(range(1, 511));
      expect(inbox.seqs("t")).toEqual(range(1, 991));
      for (const answer of answers) {
        const of = (topic: string) => answer.flatMap(({ seq }, n) => (many[n]?.topic === topic ? [seq] : []));
        for (const topic of ["t", "u"])
          expect(of(topic)).toEqual(
            range(of(topic)[0] as number, (of(topic)[0] as number) + of(topic).length),
          );
      }
      await inbox.close();
    });

    siteCase(harness, "topics that are silent for long are forgotten, and only those", async ({ open }) => {
      const clock = new HandClock();
      const [a, b] = await Promise.all([open(clock.options), open(clock.options)]);
      const inbox = await subscribe(b, "*");
      for (const topic of ["probe.a", "probe.b", "other", "probes"])
        for (let i = 0; i < 3; i++) await publish(a, topic);
      const sweep = (prefix: string, silentMs = 1000) => a.events.sweep({ prefix, silentMs });
      clock.advance(999);
      expect(await sweep("")).toEqual({ forgotten: 0 });
      await publish(a, "probe.b");
      clock.advance(1);
      expect(await sweep("probe.")).toEqual({ forgotten: 1 });
      expect((await publish(b, "probe.a")).seq).toBe(1);
      expect((await publish(b, "probe.b")).seq).toBe(5);
      expect((await publish(b, "other")).seq).toBe(4);
      expect(await sweep("")).toEqual({ forgotten: 1 });
      expect((await publish(b, "probes")).seq).toBe(1);
      // A subscription goes on over it, and knows that it is a new beginning.
      await until("all events", () => inbox.events.length === 17);
      expect(inbox.seqs("probe.a")).toEqual([1, 2, 3, 1]);
      const late = await subscribe(b, "probe*");
      expect(Object.fromEntries(await late.baselines)).toEqual({ "probe.a": 1, "probe.b": 5, probes: 1 });
      await Promise.all([inbox.close(), late.close()]);
    });

    siteCase(
      harness,
      "of topics, as many as there are are forgotten, with a prefix and without",
      async ({ open }) => {
        const clock = new HandClock();
        const store = await open(clock.options);
        const many = (prefix: string) =>
          range(0, 2500).map((n) => ({ topic: `${prefix}${n}`, source: "s", payload: "0" }));
        for (const prefix of ["probe.", "order."]) await store.events.publishMany({ events: many(prefix) });
        clock.advance(1000);
        await publish(store, "probe.0");
        await publish(store, "order.0");
        const sweep = (prefix: string) => store.events.sweep({ prefix, silentMs: 1000 });
        expect(await sweep("probe.")).toEqual({ forgotten: 2499 });
        expect(await sweep("")).toEqual({ forgotten: 2499 });
        expect(await sweep("")).toEqual({ forgotten: 0 });
        const left = await subscribe(store, "*");
        expect(Object.fromEntries(await left.baselines)).toEqual({ "probe.0": 2, "order.0": 2 });
        await left.close();
      },
    );

    siteCase(harness, "seq counts 1, 2, 3 for each topic", async ({ open }) => {
      const [a, b] = await Promise.all([open(), open()]);
      expect((await publish(a, "t")).seq).toBe(1);
      expect((await publish(b, "t")).seq).toBe(2);
      expect((await publish(b, "u")).seq).toBe(1);
      expect((await publish(a, "t")).seq).toBe(3);
    });

    siteCase(
      harness,
      "events of one topic arrive in the order of their seq, whoever publishes",
      async (site) => {
        const stores = await openThree(site);
        const inbox = await subscribe(stores[0], "*");
        const exact = await subscribe(stores[1], "t");
        await Promise.all(
          stores.map(async (store) => {
            for (const i of range(0, 100))
              await Promise.all([publish(store, "t", i), publish(store, "u", i)]);
          }),
        );
        await until("600 events", () => inbox.events.length === 600);
        await until("300 events", () => exact.events.length === 300);
        expect(inbox.seqs("t")).toEqual(range(1, 301));
        expect(inbox.seqs("u")).toEqual(range(1, 301));
        expect(exact.seqs("t")).toEqual(range(1, 301));
        await Promise.all([inbox.close(), exact.close()]);
      },
    );

    siteCase(harness, "a pattern matches by `*` and nothing else", async ({ open }) => {
      const [a, b] = await Promise.all([open(), open()]);
      const patterns = ["*", "a.*", "*.b", "a.b", "a*c", "a.*.d", "a-*"];
      const inboxes = await Promise.all(patterns.map((pattern) => subscribe(b, pattern)));
      for (const topic of ["a.b", "axb", "a.c", "ac", "a.x.y.d", "a", "b", "a-b", "last"])
        await publish(a, topic);
      await until("the last topic", () => inboxes[0]?.topics().includes("last") === true);
      const seen = Object.fromEntries(patterns.map((pattern, i) => [pattern, inboxes[i]?.topics()]));
      expect(seen).toEqual({
        "*": ["a.b", "axb", "a.c", "ac", "a.x.y.d", "a", "b", "a-b", "last"],
        "a.*": ["a.b", "a.c", "a.x.y.d"],
        "*.b": ["a.b"],
        "a.b": ["a.b"],
        "a*c": ["a.c", "ac"],
        "a.*.d": ["a.x.y.d"],
        "a-*": ["a-b"],
      });
      await Promise.all(inboxes.map((inbox) => inbox.close()));
    });

    siteCase(
      harness,
      "each subscription gets each event once, and none after its close",
      async ({ open }) => {
        const [a, b] = await Promise.all([open(), open()]);
        const inboxes = await Promise.all(
          ["t.a", "t.a", "t.*", "t.*", "*"].map((pattern) => subscribe(b, pattern)),
        );
        await publish(a, "t.a", 1);
        await until("all five", () => inboxes.every(({ events }) => events.length > 0));
        await inboxes[0]?.close();
        await inboxes[2]?.close();
        await publish(a, "t.a", 2);
        await publish(a, "t.a", 3);
        const open3 = [inboxes[1], inboxes[3], inboxes[4]] as Inbox[];
        await until("the open three", () => open3.every(({ events }) => events.length >= 3));
        expect(inboxes.map((inbox) => inbox.seqs("t.a"))).toEqual([
          [1],
          [1, 2, 3],
          [1],
          [1, 2, 3],
          [1, 2, 3],
        ]);
        await Promise.all(inboxes.map((inbox) => inbox.close()));
        await inboxes[0]?.close();
      },
    );

    siteCase(
      harness,
      "nothing published after `ready` is missed, and the past is not replayed",
      async ({ open }) => {
        const [a, b] = await Promise.all([open(), open()]);
        for (const round of range(0, 25)) {
          await publish(a, "t", "before");
          const pattern = round % 2 === 0 ? "t" : "t*";
          const inbox = await subscribe(b, pattern);
          const baseline = (await inbox.baselines).get("t") ?? 0;
          const { seq } = await publish(a, "t", "after");
          await until(`event of round ${round}`, () => inbox.seqs("t").includes(seq), 2000);
          // One that was still on its way at the time of `ready` may come too; the baseline tells it apart.
          expect(inbox.seqs("t").filter((one) => one > baseline)).toEqual([seq]);
          expect(inbox.seqs("t")[0]).toBeGreaterThanOrEqual(baseline);
          await inbox.close();
        }
      },
    );

    siteCase(
      harness,
      "a subscription made while another one of its topic is closing hears all",
      async ({ open }) => {
        const [a, b] = await Promise.all([open(), open()]);
        for (const pattern of ["t", "t*"]) {
          let inbox = await subscribe(b, pattern);
          for (const round of range(0, 5)) {
            const closing = inbox.close();
            inbox = await subscribe(b, pattern);
            const { seq } = await publish(a, "t", round);
            await until(`event of round ${round}`, () => inbox.seqs("t").includes(seq), 2000);
            await closing;
          }
          await inbox.close();
        }
      },
    );

    siteCase(harness, "baselines tell the last seq of every matching topic", async ({ open }) => {
      const [a, b] = await Promise.all([open(), open()]);
      for (const topic of ["t.a", "t.a", "t.a", "t.b", "u"]) await publish(a, topic);
      const [pattern, exact, none] = await Promise.all([
        subscribe(b, "t.*"),
        subscribe(b, "t.a"),
        subscribe(b, "never"),
      ]);
      expect(Object.fromEntries(await pattern.baselines)).toEqual({ "t.a": 3, "t.b": 1 });
      expect(Object.fromEntries(await exact.baselines)).toEqual({ "t.a": 3 });
      expect((await none.baselines).get("never") ?? 0).toBe(0);
      await publish(a, "t.a");
      await until("the next event", () => pattern.events.length === 1);
      expect(pattern.seqs("t.a")).toEqual([4]);
      await Promise.all([pattern.close(), exact.close(), none.close()]);
    });

    siteCase(
      harness,
      "of thousands of topics each has its baseline, while others are published to",
      async ({ open }) => {
        const [a, b] = await Promise.all([open(), open()]);
        const many = async (prefix: string) => {
          const events = range(0, 3500).map((n) => ({ topic: `${prefix}${n}`, source: "s", payload: "0" }));
          await a.events.publishMany({ events });
        };
        for (const prefix of ["order.", "order.", "other."]) await many(prefix);
        const work = { busy: true };
        const publishing = (async () => {
          const sent = new Map<string, number>();
          // Known ones from both ends, and ones that nobody has heard of.
          for (let n = 0; work.busy && n < 3000; n++) {
            const topics = [`order.${n % 3500}`, `order.${3499 - (n % 3500)}`, `order.new${n}`];
            for (const topic of topics) sent.set(topic, (await publish(a, topic)).seq);
          }
          return sent;
        })();
        const exact = await subscribe(b, "order.7");
        expect([...(await exact.baselines).keys()]).toEqual(["order.7"]);
        const inboxes: { inbox: Inbox; baselines: ReadonlyMap<string, number> }[] = [];
        for (const pattern of ["order.*", "*", "*.3*"]) {
          const inbox = await subscribe(b, pattern);
          inboxes.push({ inbox, baselines: await inbox.baselines });
        }
        work.busy = false;
        const sent = await publishing;
        const { seq } = await publish(a, "order.3");
        sent.set("order.3", seq);
        for (const { inbox, baselines } of inboxes) {
          await until("the last event", () => inbox.seqs("order.3").includes(seq), 30_000);
          const last = new Map(baselines);
          const odd: string[] = [];
          // Nothing between a baseline and what came first, or among what came: so nothing counts as missed that was not.
          for (const event of inbox.events) {
            const before = last.get(event.topic) ?? 0;
            if (event.seq > before + 1) odd.push(`${event.topic}: ${event.seq} after ${before}`);
            last.set(event.topic, Math.max(before, event.seq));
          }
          for (const [topic, at] of last) {
            const end = sent.get(topic) ?? (topic.startsWith("order.") ? 2 : 1);
            if (at !== end) odd.push(`${topic}: ${at} of ${end}`);
          }
          expect(odd).toEqual([]);
        }
        const [orders, all, threes] = inboxes.map(({ baselines }) => [...baselines.keys()]);
        expect(orders?.filter((topic) => !topic.includes("new"))).toHaveLength(3500);
        expect(all?.filter((topic) => !topic.includes("new"))).toHaveLength(7000);
        expect(new Set(threes?.map((topic) => topic.slice(0, 7)))).toEqual(new Set(["order.3", "other.3"]));
        await Promise.all([exact.close(), ...inboxes.map(({ inbox }) => inbox.close())]);
      },
    );

    siteCase(harness, "no event is lost between the baselines and the stream of events", async ({ open }) => {
      const [a, b] = await Promise.all([open(), open()]);
      const work = { busy: true };
      const publishing = (async () => {
        let last = 0;
        while (work.busy) last = (await publish(a, "t")).seq;
        return last;
      })();
      const inboxes: { inbox: Inbox; baseline: number }[] = [];
      for (const round of range(0, 15)) {
        const inbox = await subscribe(b, round % 2 === 0 ? "t" : "*");
        inboxes.push({ inbox, baseline: (await inbox.baselines).get("t") ?? 0 });
      }
      work.busy = false;
      const last = await publishing;
      for (const { inbox, baseline } of inboxes) {
        await until("the last event", () => inbox.seqs("t").at(-1) === last || baseline === last);
        expect(inbox.seqs("t").filter((seq) => seq > baseline)).toEqual(range(baseline + 1, last + 1));
        await inbox.close();
      }
    });

    siteCase(
      harness,
      "another namespace hears nothing and counts for itself",
      async ({ open, openBeside }) => {
        const own = await open();
        const other = await openBeside("x");
        const [here, there] = await Promise.all([subscribe(own, "*"), subscribe(other, "*")]);
        await publish(own, "t", "own");
        await publish(own, "t", "own");
        expect((await publish(other, "t", "other")).seq).toBe(1);
        await until("both", () => here.events.length === 2 && there.events.length === 1);
        expect(here.events.map(({ payload }) => payload)).toEqual(["own", "own"]);
        expect(there.events.map(({ payload }) => payload)).toEqual(["other"]);
        expect(here.events[0]?.fleet).not.toBe(there.events[0]?.fleet);
        await Promise.all([here.close(), there.close()]);
      },
    );
  });
}
