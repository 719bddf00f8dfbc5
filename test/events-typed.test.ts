// Short (`npm test`): topics by contract on both stores: what is checked, what is parsed, what a slow reader does not get.
import { describe, expect, expectTypeOf, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { fleetOn } from "../src/automation/fleet.ts";
import { FLEET_TOPICS, type SlotEnded } from "../src/contracts/life-cycle.ts";
import { defineTopic } from "../src/contracts/topic.ts";
import type { Log } from "../src/internal/log.ts";
import { eventBus } from "../src/primitives/events.ts";
import { openPlace, PLACES } from "./support/places.ts";
import { temporaryFolder } from "./support/stores.ts";

vi.setConfig({ testTimeout: 30_000 });

const STARTED = defineTopic("harvest.started", z.object({ site: z.string(), at: z.coerce.date() }));
const SMALL = defineTopic("small", z.string(), { maxBytes: 10 });

describe.each(PLACES)("on $name", ({ at }) => {
  /** A publisher and a subscriber on connections of their own. */
  async function setUp() {
    const folder = temporaryFolder();
    onTestFinished(() => folder.remove());
    const place = at(folder.path);
    const warnings: unknown[][] = [];
    const warn = (...said: unknown[]) => void warnings.push(said);
    const log: Log = { debug: () => undefined, info: () => undefined, warn, error: warn };
    const [store, other] = [await openPlace(place), await openPlace(place)];
    const publisher = fleetOn(store, { log, source: "test" });
    const subscriber = fleetOn(other, { log });
    onTestFinished(() => publisher.close());
    onTestFinished(() => subscriber.close());
    return { store, publisher: publisher.events, subscriber: subscriber.events, warnings };
  }

  it("checks what is published and parses what arrives", async () => {
    const { publisher, subscriber } = await setUp();
    const events = subscriber.subscribe(STARTED);
    await events.ready;
    await publisher.publish(STARTED, { site: "a", at: "2027-01-01T00:00:00Z" });
    const { value } = await events.next();
    if (value === undefined) throw new Error("the subscription ended");
    expectTypeOf(value.payload).toEqualTypeOf<{ site: string; at: Date }>();
    expect(value).toMatchObject({ topic: "harvest.started", source: "test", seq: 1, missed: 0 });
    expect(value.payload).toEqual({ site: "a", at: new Date("2027-01-01T00:00:00Z") });
  });

  it("takes many subscriptions without a warning of leaks, and ends them all", async () => {
    const { subscriber } = await setUp();
    const said: Error[] = [];
    const hear = (warning: Error) => void said.push(warning);
    process.on("warning", hear);
    onTestFinished(() => void process.off("warning", hear));
    const many = Array.from({ length: 30 }, (_, i) => subscriber.subscribe(`many.t${i}`));
    await Promise.all(many.map(({ ready }) => ready));
    // Warnings are given out with the next turn of the loop.
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(said.map(({ name }) => name)).not.toContain("MaxListenersExceededWarning");
    await Promise.all(many.map((one) => one.close()));
  });

  it("refuses what does not fit, naming the field, and numbers nothing for it", async () => {
    const { publisher, subscriber } = await setUp();
    const events = subscriber.subscribe("*");
    await events.ready;
    const wrong = publisher.publish(STARTED, { site: 5 as unknown as string, at: 0 });
    await expect(wrong).rejects.toThrow(TypeError);
    await expect(wrong).rejects.toMatchObject({
      code: "FLEET_PAYLOAD_INVALID",
      message: expect.stringMatching(/^event "harvest\.started": site: /) as string,
    });
    await expect(publisher.publish(SMALL, "longer than ten")).rejects.toMatchObject({
      code: "FLEET_PAYLOAD_TOO_LARGE",
      message: expect.stringContaining("the limit is 10") as string,
    });
    await expect(publisher.publish("plain", "x".repeat(65_536))).rejects.toMatchObject({
      code: "FLEET_PAYLOAD_TOO_LARGE",
    });
    await expect(
      publisher.publish(FLEET_TOPICS.workerOnline, { worker: "w", host: "h" }),
    ).rejects.toMatchObject({ code: "FLEET_NAME_INVALID" });
    await publisher.publish(SMALL, "short");
    expect((await events.next()).value).toMatchObject({ topic: "small", seq: 1, payload: "short" });
  });

  it("leaves out, counts and says what does not fit the subscriber's schema", async () => {
    const { publisher, subscriber, warnings } = await setUp();
    const events = subscriber.subscribe(STARTED);
    await events.ready;
    await publisher.publish("harvest.started", { site: 1 });
    await publisher.publish("harvest.started", "nonsense");
    await publisher.publish(STARTED, { site: "b", at: 0 });
    expect((await events.next()).value).toMatchObject({ payload: { site: "b" }, seq: 3, missed: 2 });
    expect(warnings).toHaveLength(1);
    expect(warnings[0]?.[0]).toContain('event "harvest.started" does not fit its schema');
  });

  it("yields any payload for a pattern, and those of the framework typed", async () => {
    const { store, subscriber } = await setUp();
    const own = eventBus({ store: store.events, source: "worker", own: true });
    const [all, crashes] = [
      subscriber.subscribe("fleet.slot.*"),
      subscriber.subscribe(FLEET_TOPICS.slotCrashed),
    ];
    await Promise.all([all.ready, crashes.ready]);
    const crash: SlotEnded = {
      automation: "a",
      slot: 0,
      worker: "w",
      outcome: "failed",
      cause: null,
      error: "Error: no",
    };
    await own.publish(FLEET_TOPICS.slotStarted, { automation: "a", slot: 0, worker: "w" });
    await own.publish(FLEET_TOPICS.slotCrashed, crash);
    const { value } = await crashes.next();
    if (value === undefined) throw new Error("the subscription ended");
    expectTypeOf(value.payload).toEqualTypeOf<SlotEnded>();
    expect(value.payload).toEqual(crash);
    const seen = [await all.next(), await all.next()].map((next) => next.value?.topic);
    expect(seen).toEqual(["fleet.slot.started", "fleet.slot.crashed"]);
  });

  it.each([
    ["drop-oldest" as const, [8, 9, 10], [7, 0, 0]],
    ["drop-newest" as const, [1, 2, 3], [0, 0, 0]],
  ])("keeps what fits the buffer: %s", async (whenFull, seqs, missed) => {
    const { publisher, subscriber } = await setUp();
    const events = subscriber.subscribe("t", { buffer: 3, whenFull });
    // Sees all, so it tells when all have come.
    const control = subscriber.subscribe("t");
    await Promise.all([events.ready, control.ready]);
    for (let i = 1; i <= 10; i++) await publisher.publish("t", i);
    for (let i = 1; i <= 10; i++) await control.next();
    const seen = [await events.next(), await events.next(), await events.next()].map(({ value }) => value);
    expect(seen.map((event) => event?.seq)).toEqual(seqs);
    expect(seen.map((event) => event?.missed)).toEqual(missed);
    await publisher.publish("t", 11);
    expect((await events.next()).value).toMatchObject({
      seq: 11,
      missed: whenFull === "drop-newest" ? 7 : 0,
    });
  });

  it("refuses wrong options", async () => {
    const { subscriber } = await setUp();
    expect(() => subscriber.subscribe("t", { buffer: 0 })).toThrow(
      'subscription to "t": buffer must be at least 1, got 0',
    );
    expect(() => subscriber.subscribe("t", { whenFull: "wait" as "drop-oldest" })).toThrow(
      'whenFull must be "drop-oldest" or "drop-newest", got "wait"',
    );
  });
});
