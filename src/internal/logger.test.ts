import { expect, test } from "vitest";
import { createLogger, type LoggerOptions } from "./logger.ts";

function record(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const log = createLogger({
    format: "text",
    write: (line) => void lines.push(line),
    now: () => 0,
    ...options,
  });
  return { log, lines };
}

test("a line for people has time, level, message and fields", () => {
  const { log, lines } = record();
  log.info("slot started", { slot: "a/0", note: "two words", n: 3, gone: undefined });
  expect(lines[0]?.slice(8)).toBe(' info  slot started slot=a/0 note="two words" n=3\n');
  expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d /);
});

test("a JSON line has the same, and its own three fields cannot be overwritten", () => {
  const { log, lines } = record({ format: "json", fields: { worker: "w" } });
  log.error("failed", { error: new Error("boom"), level: "fake", at: new Date(0) });
  expect(JSON.parse(lines[0] as string)).toEqual({
    worker: "w",
    error: "boom",
    at: "1970-01-01T00:00:00.000Z",
    level: "error",
    time: 0,
    msg: "failed",
  });
});

test("levels below the lowest are dropped", () => {
  const { log, lines } = record({ level: "warn" });
  log.debug("a");
  log.info("b");
  log.warn("c");
  log.error("d");
  expect(lines).toHaveLength(2);
});

test("neither secrets nor control characters get through", () => {
  for (const format of ["text", "json"] as const) {
    const { log, lines } = record({ format });
    log.warn("lost redis://:S3CRET-x@h\u001b[2J\nforged", {
      password: "S3CRET-x",
      nested: { authorization: "S3CRET-x", url: "redis://u:S3CRET-x@h" },
      error: new Error("redis://:S3CRET-x@h"),
      "odd\nkey": "v\u001b",
    });
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain("S3CRET-x");
    // oxlint-disable-next-line no-control-regex
    expect(lines[0]?.trimEnd()).not.toMatch(/[\u0000-\u001f]/);
  }
});

test("what throws where it is looked at costs its own value, and not the code that logs", () => {
  const fail = () => {
    throw new Error("no");
  };
  const bare = Object.create(null) as object;
  const odd = Proxy.revocable({}, {});
  odd.revoke();
  const message = Object.defineProperty(new Error("x"), "message", { get: fail });
  const { log, lines } = record({ format: "json" });
  log.info(bare as unknown as string, {
    json: { toJSON: fail },
    list: [1, { toJSON: fail }, 3],
    inner: {
      get bad() {
        return fail();
      },
      n: 1,
    },
    date: Object.assign(new Date(0), { toISOString: fail }),
    message,
    odd: odd.proxy,
    symbol: Symbol("s"),
    n: 2,
  });
  log.info("whole", odd.proxy);
  log.info("getter", {
    get bad() {
      return fail();
    },
  });
  const lost = "(unreadable)";
  expect(JSON.parse(lines[0] as string)).toEqual({
    json: lost,
    list: [1, lost, 3],
    inner: { bad: lost, n: 1 },
    date: lost,
    message: lost,
    odd: lost,
    symbol: "Symbol(s)",
    n: 2,
    level: "info",
    time: 0,
    msg: lost,
  });
  expect(JSON.parse(lines[1] as string)).toMatchObject({ msg: "whole", "…": lost });
  expect(JSON.parse(lines[2] as string)).toMatchObject({ msg: "getter", bad: lost });
});

test("circles and deep values end", () => {
  const { log, lines } = record();
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  log.info("x", { circle, big: 10n, fn: () => 1, nan: Number.NaN });
  expect(lines[0]).toContain("…");
  expect(lines[0]).toContain("big=10");
});

test("a line stays short, whatever it is given, and shows nothing of what a cut goes through", () => {
  const { log, lines } = record({ format: "json" });
  const long = "https://x,".repeat(100_000);
  const fields = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`key ${i}`, long]));
  log.info(`${"m".repeat(8180)} redis://:S3CRET-x@h ${long}`, {
    ...fields,
    error: new Error(long),
    nested: Array.from({ length: 100 }, () => Array.from({ length: 100 }, () => ["v"])),
    [long]: 1,
  });
  log.info("small", { fields: Array.from({ length: 2000 }, () => ({ [long]: long })) });
  for (const line of lines) expect(line.length).toBeLessThan(120_000);
  expect(lines[0]).not.toContain("S3C");
  expect(JSON.parse(lines[0] as string)).toMatchObject({
    level: "info",
    msg: expect.stringMatching(/^m+ .*…$/) as string,
  });
});

test("what says itself how it is written is written so", () => {
  const { log, lines } = record();
  log.info("x", { at: new URL("https://u:S3CRET-x@h/path"), list: new Set([1]) });
  expect(lines[0]).toContain("x at=https://***@h/path");
});
