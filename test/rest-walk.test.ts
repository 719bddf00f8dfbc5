// Short (`npm test`): docs/rest.md, followed to the letter with the real curl against a real `fleet up`; and its tables against the code.
// Needs dist/ (`npm run build`).
import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Route } from "../src/client/route.ts";
import { createClient as createFleetClient } from "../src/client/client.ts";
import { ROUTES } from "../src/client/routes.ts";
import { MAX_PAGE } from "../src/client/shapes.ts";
import { ERROR_CODES, type ErrorCode, FleetError, messageOf } from "../src/errors.ts";
import { createMaster } from "../src/master/create-master.ts";
import { problemOf } from "../src/master/http/request-problem.ts";
import { makeProject, runFleet, startFleet, writeInto } from "./support/cli.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PAGE = readFileSync(join(ROOT, "docs/rest.md"), "utf8");
const ADDRESS = "http://127.0.0.1:4400";

const blocks = [...PAGE.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = "", text = ""]) => ({
  language,
  text,
}));
/** Code that names its file stands in the project; other code shows how the entries are used. */
const code = blocks.filter(({ language }) => language === "ts").map(({ text }) => text);
const files = Object.fromEntries(
  code.flatMap((text) => {
    const name = /^\/\/ (\S+\.ts)\n/.exec(text)?.[1];
    return name === undefined ? [] : [[name, text] as const];
  }),
);
const [start, ...commands] = blocks
  .filter(({ language }) => language === "sh")
  .flatMap(({ text }) => text.trimEnd().split("\n"));
const follow = commands.findIndex((line) => line.startsWith("curl -N "));

const MARK = "--- answered ---";

/** Runs the commands one after the other in one shell, and gives what each has printed. */
async function shell(lines: readonly string[], cwd: string): Promise<string[]> {
  const script = lines.map((line) => `${line}\nprintf '%s\\n' '${MARK}'`).join("\n");
  const { stdout } = await promisify(execFile)("sh", ["-c", script], { cwd });
  return stdout.split(`${MARK}\n`).slice(0, -1);
}

interface Problem {
  status: number;
  code: string;
  errors: { pointer: string }[];
}

describe("the page of the REST API", () => {
  it("holds the seed's own command as it stands", () => {
    expect(commands).toContain(
      `curl -X POST $API/automations/url-pinger/output/pop -H "Authorization: Bearer $TOKEN" -d '{"n": 10}'`,
    );
    expect(commands.join("\n")).not.toMatch(/content-type/i);
  });

  it("is a walk that curl alone can go", { timeout: 60_000 }, async () => {
    expect(start).toBe("npx fleet up");
    expect(follow).toBeGreaterThan(15);
    const cwd = makeProject(files);
    const up = startFleet(["up"], { cwd });
    await up.until((text) => text.includes("running url-pinger, greeter"));
    const url = /master at (http:\S+)/.exec(up.stderr())?.[1] ?? "";
    const here = (text: string) => text.replaceAll(ADDRESS, url);
    await vi.waitFor(
      async () =>
        expect((await runFleet(["stream", "length", "url-pinger"], { cwd })).stdout).toMatch(/^[1-9]/),
      { timeout: 20_000 },
    );

    const answers = await shell(commands.slice(0, follow).map(here), cwd);
    const answered = new Map(commands.slice(0, follow).map((line, at) => [line, answers[at] ?? ""]));
    /** The answers of the commands with all of these words in them, in their order. */
    const of = <T>(...words: string[]): T[] =>
      [...answered]
        .filter(([line]) => words.every((word) => line.includes(word)))
        .map(([, text]) => (text === "" ? undefined : JSON.parse(text)) as T);
    // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller names what it expects
    const one = <T>(...words: string[]): T => {
      const [first, ...more] = of<T>(...words);
      expect({ words, more }).toEqual({ words, more: [] });
      return first as T;
    };

    const [automations] = of<{ items: { name: string }[] }>("$API/automations -H");
    expect(automations?.items.map(({ name }) => name)).toEqual(["greeter", "url-pinger"]);
    expect(one("$API/automations/url-pinger -H")).toMatchObject({
      name: "url-pinger",
      config: { urls: ["https://example.com"] },
      config_schema: { type: "object" },
    });

    expect(one("0.2")).toMatchObject({
      changed: true,
      generation: 2,
      config: { urls: ["https://example.com"], everySeconds: 0.2 },
      diff: [{ pointer: "/everySeconds", after: 0.2 }],
    });
    const invalid = one<Problem>('"often"');
    expect([invalid.status, invalid.code, invalid.errors[0]?.pointer]).toEqual([
      422,
      "FLEET_CONFIG_INVALID",
      "/everySeconds",
    ]);
    expect(one<Problem>("If-Match")).toMatchObject({ status: 409, code: "FLEET_CONFLICT" });

    const popped = one<Record<string, unknown>[]>("output/pop");
    expect(popped.length).toBeGreaterThan(0);
    expect(Object.keys(popped[0] ?? {})).toEqual(["id", "slot_id", "ts", "payload"]);
    expect(popped[0]).toMatchObject({ slot_id: 0, payload: { url: "https://example.com", n: 0 } });
    // Looked at before it is popped: there is something to see.
    const peeked = one<unknown[]>("output/peek");
    expect(peeked).toEqual(popped.slice(0, peeked.length));
    expect([1, 2]).toContain(peeked.length);
    expect(one<{ length: number }>("output/length").length).toBeGreaterThan(0);

    expect(one<Problem>("order-1")).toMatchObject({ status: 422, code: "FLEET_OPTION_INVALID" });
    const submitted = of<{ ids: string[] }>("greeter/tasks -H", "hello-1").at(-1);
    expect(submitted).toEqual({
      tasks: [{ id: "hello-1", outcome: "submitted" }],
      ids: ["hello-1"],
      validated: "full",
    });
    expect(one("hello-1/result")).toEqual({
      id: "hello-1",
      done: true,
      state: "completed",
      reason: null,
      error: null,
      result: { text: "Hello, Ada" },
    });
    const [listed] = of<{ items: { id: string }[] }>("state=completed");
    expect(listed?.items.map(({ id }) => id)).toContain("hello-1");

    const [items] = of<{ items: unknown[] }>("$API/pools/sessions/items -H").slice(-1);
    expect(items?.items).toMatchObject([
      { state: "free", payload: { cookie: "abc" }, tags: { site: "example.com" } },
    ]);
    expect(one("/extend")).toEqual({ until: expect.any(Number) as number });
    expect(answered.get(commands.find((line) => line.includes("/release")) ?? "")).toBe("");

    // Both submissions with one key stand there twice, word for word.
    const repeats = commands.slice(0, follow).flatMap((line, at) => (line.includes("order-2") ? [at] : []));
    const [first, again] = repeats.map((at) => JSON.parse(answers[at] ?? "") as { ids: string[] });
    expect(repeats).toHaveLength(2);
    expect(again).toMatchObject({
      ids: first?.ids,
      tasks: [{ outcome: "repeated" }, { outcome: "repeated" }],
    });

    await followEvents(commands.slice(follow), here, cwd);
    await runSnippet(cwd, here);
    up.signal("SIGINT");
    expect(await up.ended).toBe(0);
  });

  async function followEvents(lines: readonly string[], here: (text: string) => string, cwd: string) {
    // The other terminal knows neither variable: the page sets both anew.
    const [tail = "", ...elsewhere] = lines;
    expect(elsewhere).toHaveLength(3);
    expect(elsewhere.slice(0, 2)).toEqual(commands.slice(0, 2));
    const variables = commands.slice(0, 2).map(here);
    expect(variables.map((line) => line.split("=")[0])).toEqual(["API", "TOKEN"]);
    const following = spawn("sh", ["-c", [...variables, `exec ${tail}`].join("\n")], {
      cwd,
      stdio: ["ignore", "pipe", "ignore"],
    });
    onTestFinished(() => void following.kill("SIGKILL"));
    let seen = "";
    following.stdout.setEncoding("utf8").on("data", (text: string) => (seen += text));
    await vi.waitFor(() => expect(seen).toBe(": open\n\n"), { timeout: 10_000 });
    const [said] = (await shell(elsewhere.map(here), cwd)).slice(-1);
    expect(JSON.parse(said ?? "")).toEqual({ topic: "shop.opened" });
    await vi.waitFor(() => expect(seen).toContain("data: "), { timeout: 10_000 });
    expect(JSON.parse(seen.split("data: ")[1] ?? "")).toMatchObject({
      topic: "shop.opened",
      payload: { at: "09:00" },
      source: "api:admin",
      seq: 1,
      missed: 0,
    });
    following.kill();
  }

  /** What the page shows of the client, run as it stands; then an event comes. */
  async function runSnippet(cwd: string, here: (text: string) => string) {
    const snippet = code.find((text) => text.includes("fleet-framework/client")) ?? "";
    writeInto(cwd, "client.mjs", here(snippet));
    const token = readFileSync(join(cwd, ".fleet/token"), "utf8").trim();
    const script = spawn(process.execPath, ["client.mjs"], {
      cwd,
      env: { PATH: process.env["PATH"], TOKEN: token },
    });
    onTestFinished(() => void script.kill("SIGKILL"));
    let said = "";
    for (const stream of [script.stdout, script.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => (said += text));
    const publish = commands
      .slice(0, 2)
      .map(here)
      .concat(here(commands.at(-1) ?? ""));
    await vi.waitFor(
      async () => {
        await shell(publish, cwd);
        expect(said).toContain("topic: 'shop.opened'");
      },
      { timeout: 15_000, interval: 300 },
    );
    script.kill();
  }
});

describe("the tables of the page", () => {
  it("have every route, and none that there is not", () => {
    const rows = [...PAGE.matchAll(/^\| `([A-Z]+) (\/\S*)` \| `(\w+)` \| (.*) \|$/gm)].map(
      ([, method, path, name, what]) => ({ method, path, name, what }),
    );
    const table = Object.entries(ROUTES as Record<string, Route>).map(([name, route]) => ({
      method: route.method,
      path: route.path,
      name,
      what: route.summary + (route.events ? " (SSE)" : ""),
    }));
    expect(rows).toEqual(table);
  });

  it("have every status that an error can have", () => {
    const [, errors = ""] = /^## Errors$([^]*?)^## /m.exec(PAGE) ?? [];
    const rows = [...errors.matchAll(/^\| (\d{3}) \|/gm)].map(([, status]) => Number(status));
    const codes = Object.keys(ERROR_CODES) as ErrorCode[];
    const statuses = codes.map((code) => problemOf(new FleetError(code, "x")).problem.status);
    expect(statuses.filter((status) => !rows.includes(status))).toEqual([]);
    expect(rows).toEqual(rows.toSorted((a, b) => a - b));
  });

  it("have the options that there are, and the limits of lists", async () => {
    // What is not known is refused with all that is.
    const known = async (call: () => unknown): Promise<string[]> => {
      const said = await Promise.resolve()
        .then(call)
        .catch((error: unknown) => messageOf(error));
      return /known: (.*)$/.exec(String(said))?.[1]?.split(", ") ?? [];
    };
    const [, ofClient = "", ofMaster = ""] = PAGE.split(/^`create(?:Client|Master)` of /m);
    const options = (text: string) => [...text.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
    const odd = { qqqqqqqqqqqq: 1 } as never;
    expect(options(ofClient)).toEqual(await known(() => createFleetClient(odd)));
    expect(options(ofMaster)).toEqual(await known(() => createMaster(odd)));
    expect(options(ofMaster).length).toBeGreaterThan(5);
    expect(PAGE).toContain(`| page of a list | ${MAX_PAGE} |`);
    expect(PAGE).toContain(`at most ${MAX_PAGE})`);
  });
});
