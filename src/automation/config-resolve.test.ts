import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { cleanFields } from "../internal/log-fields.ts";
import { parseConfig } from "./config-resolve.ts";
import { hideInEnd, hideSecrets, tellSecrets } from "./config-secrets.ts";
import { traceOf } from "./trace.ts";

const parse = (config: unknown, schema?: z.ZodType) =>
  parseConfig({ name: "a", options: schema === undefined ? {} : { config: schema } }, config);
const messageOf = (call: Promise<unknown>) =>
  call.then(
    () => "nothing",
    (error: Error) => error.message,
  );
function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), "fleet-config-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}

describe("parseConfig", () => {
  it("puts values in the place of references, before the schema sees them", async () => {
    const dir = folder();
    writeFileSync(join(dir, "key"), "from a file\n");
    vi.stubEnv("FOR_CONFIG", "17");
    const config = {
      n: "env:FOR_CONFIG",
      list: [`file:${dir}/key`, "env::FOR_CONFIG", "plain"],
      url: "file:///x",
    };
    const schema = z.object({ n: z.coerce.number(), list: z.array(z.string()), url: z.string() });
    expect(await parse(config, schema)).toEqual({
      n: 17,
      list: ["from a file", "env:FOR_CONFIG", "plain"],
      url: "file:///x",
    });
    expect(await parse({ n: "env:FOR_CONFIG" })).toEqual({ n: "17" });
    expect(await parse("env:FOR_CONFIG")).toBe("17");
    expect(config.n).toBe("env:FOR_CONFIG");
  });

  it("names the fields whose references lead nowhere", async () => {
    const dir = folder();
    writeFileSync(join(dir, "large"), "x".repeat(65_537));
    const config = {
      a: "env:NOT_THERE_AT_ALL",
      b: { c: `file:${dir}/none` },
      d: `file:${dir}`,
    };
    expect(await messageOf(parse(config))).toBe(
      `config of "a": a: env:NOT_THERE_AT_ALL: there is no such variable in the environment that the automation sees; b.c: file:${dir}/none: there is no such file; d: file:${dir}: it is no file`,
    );
    expect(await messageOf(parse([`file:${dir}/large`]))).toContain("it has more than 65536 bytes");
  });

  it("waits for no pipe, and reads nothing that it may not", async () => {
    const dir = folder();
    execFileSync("mkfifo", [join(dir, "pipe")]);
    expect(await messageOf(parse([`file:${dir}/pipe`]))).toContain("it is no file");
    writeFileSync(join(dir, "closed"), "x");
    chmodSync(join(dir, "closed"), 0o000);
    const said = await messageOf(parse([`file:${dir}/closed`]));
    // Whoever runs as root may read all.
    expect(said).toBe(
      process.getuid?.() === 0
        ? "nothing"
        : `config of "a": 0: file:${dir}/closed: this user may not read it`,
    );
  });

  it.each(["FLEET_TOKEN", "FLEET_STORE", "FLEET_ANYTHING"])("does not read %s", async (name) => {
    vi.stubEnv(name, "a secret of Fleet's own");
    const said = await messageOf(parse({ key: `env:${name}` }));
    expect(said).toContain(`key: env:${name}: variables of Fleet's own are not for configs`);
    expect(said).not.toContain("a secret of");
  });

  it("shows no value in what it says of a config that does not fit, not even a short one", async () => {
    vi.stubEnv("FOR_CONFIG", "s3");
    vi.stubEnv("LONG_SECRET", 'a "quoted" secret');
    const schema = z.object({
      a: z.string().refine(() => false, { error: ({ input }) => `${String(input)} is no good` }),
      b: z.string().refine(() => false, { error: ({ input }) => JSON.stringify(input) }),
    });
    expect(await messageOf(parse({ a: "env:FOR_CONFIG", b: "env:LONG_SECRET" }, schema))).toBe(
      'config of "a": a: env:FOR_CONFIG is no good; b: "env:LONG_SECRET"',
    );
    const throwing = z.string().transform((text) => {
      throw new Error(`cannot take ${text}`);
    });
    expect(await messageOf(parse("env:LONG_SECRET", throwing))).toBe(
      'config of "a": cannot take env:LONG_SECRET',
    );
  });
});

describe("what a process has read by reference", () => {
  it("is hidden in errors and log lines; what is short is a word like any other", async () => {
    vi.stubEnv("LONG_SECRET", "swordfish-17");
    vi.stubEnv("FOR_CONFIG", "eu");
    await parse(["env:LONG_SECRET", "env:FOR_CONFIG"]);
    expect(traceOf(new Error("no swordfish-17", { cause: new Error("swordfish-17 in eu") }))).toContain(
      "env:LONG_SECRET in eu",
    );
    expect(hideSecrets("a swordfish-17, swordfish-17")).toBe("a env:LONG_SECRET, env:LONG_SECRET");
    const circle: Record<string, unknown> = { list: ["swordfish-17"], n: 1 };
    circle.self = circle;
    const clean = cleanFields([{ circle, "of swordfish-17": new Error("swordfish-17") }], hideSecrets);
    expect(JSON.stringify(clean)).not.toContain("swordfish-17");
    expect(clean).toMatchObject({
      circle: { list: ["env:LONG_SECRET"], n: 1 },
      "of env:LONG_SECRET": "env:LONG_SECRET",
    });
  });

  it("is hidden by others that are told, also where a text begins in the middle of it", async () => {
    const told: [string, string][] = [];
    tellSecrets((...secret) => void told.push(secret));
    onTestFinished(() => tellSecrets(() => undefined));
    vi.stubEnv("TOLD", "line one\nswordfish-18");
    vi.stubEnv("FOR_CONFIG", "eu");
    for (let i = 0; i < 2; i += 1) await parse(["env:TOLD", "env:FOR_CONFIG"]);
    expect(told).toEqual([["line one\nswordfish-18", "env:TOLD"]]);
    const secrets = new Map(told);
    expect(hideInEnd("one\nswordfish-18 and line one\nswordfish-18!", secrets)).toBe(
      "env:TOLD and env:TOLD!",
    );
    expect(hideInEnd('one\\nswordfish-18", "line one\\nswordfish-18"', secrets)).toBe(
      'env:TOLD", "env:TOLD"',
    );
    expect(hideInEnd("sh-18 is too little to tell", secrets)).toBe("sh-18 is too little to tell");
    expect(hideInEnd("", secrets)).toBe("");
  });
});
