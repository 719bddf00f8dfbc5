import { expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { defineQueue } from "../contracts/queue.ts";
import { settingsOf } from "../primitives/queue-settings.ts";
import { scheduleSpec } from "../primitives/schedule-spec.ts";
import { openStore } from "../store/open.ts";
import { runNow } from "./schedules.ts";

const QUEUE = defineQueue("reports", { payload: z.object({}), maxLength: 1 });

it("a schedule that is run now says why it cannot be, and what helps", async () => {
  const store = await openStore("sqlite::memory:");
  onTestFinished(() => store.close());
  const spec = await scheduleSpec(QUEUE, "nightly", { everySeconds: 60, payload: {} }, "runtime");
  const run = () => runNow(store.queues, "reports", spec);
  await expect(run()).rejects.toMatchObject({
    code: "FLEET_STORE_FAILED",
    retryable: true,
    message: expect.stringContaining("start a worker that runs it"),
  });
  await store.queues.declare({ queue: "reports", settings: settingsOf(QUEUE), as: "owner" });
  const id = await run();
  expect(await store.queues.get({ queue: "reports", id })).toMatchObject({ state: "waiting" });
  await expect(run()).rejects.toMatchObject({
    code: "FLEET_QUEUE_FULL",
    message: expect.stringMatching(/1 tasks wait, maxLength is 1; .*add slots, or raise maxLength/),
  });
});
