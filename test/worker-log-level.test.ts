// Short (`npm test`): what a child process sends of its log, by the level that its worker writes. Needs dist/.
import { expect, test, vi } from "vitest";
import type { LogLevel } from "../src/internal/log.ts";
import type { FromHost } from "../src/protocol/host.ts";
import { startTalker } from "./support/talker.ts";

test.each<[LogLevel, LogLevel[]]>([
  ["debug", ["debug", "info", "warn", "error"]],
  ["info", ["info", "warn", "error"]],
  ["error", ["error"]],
])(
  "with level %s a child sends %j",
  async (logLevel, expected) => {
    const { heard, run } = startTalker(
      `
      import { defineContinuous } from "fleet-framework";
      export default defineContinuous("talker", {
        async runSlot(ctx) {
          for (const level of ["debug", "info", "warn", "error"]) ctx.log[level]("said", { level });
        },
      });`,
      { logLevel },
    );
    const until = (type: FromHost["type"]) =>
      vi.waitFor(() => expect(heard.map((message) => message.type)).toContain(type), { timeout: 20_000 });
    await until("ready");
    run({});
    await until("ended");
    const said = heard.flatMap((message) =>
      message.type === "log" && message.message === "said" ? [message.level] : [],
    );
    expect(said).toEqual(expected);
  },
  60_000,
);
