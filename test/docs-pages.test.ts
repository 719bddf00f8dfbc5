// Short (`npm test`): links lead somewhere, code in the documents compiles, numbers and names are those of the code.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transformSync } from "esbuild";
import { describe, expect, it } from "vitest";
import { POOL_DEFAULTS } from "../src/contracts/pool.ts";
import { QUEUE_DEFAULTS } from "../src/contracts/queue.ts";
import { STREAM_DEFAULTS } from "../src/contracts/stream.ts";
import { DEFAULT_TIMINGS } from "../src/worker/timings.ts";
import { HEAL_CAUSES } from "../src/protocol/health.ts";
import { runFleet } from "./support/cli.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const pages = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  ...readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file}`),
];
const read = (page: string) => readFileSync(join(ROOT, page), "utf8");

/** How a heading is addressed. */
const anchors = (text: string) =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );

describe("the documents", () => {
  it.each(pages)("%s links only to what is there", (page) => {
    const broken = [...read(page).matchAll(/\]\((?!https?:)([^)]+)\)/g)].filter(([, link = ""]) => {
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? join(ROOT, page) : join(ROOT, dirname(page), path);
      if (!existsSync(target)) return true;
      return anchor !== undefined && !anchors(readFileSync(target, "utf8")).includes(anchor);
    });
    expect(broken.map(([, link]) => link)).toEqual([]);
  });

  it.each(pages)("%s has only code that compiles", (page) => {
    for (const [, language, code = ""] of read(page).matchAll(/^```(ts|js)\n(.*?)^```$/gms)) {
      // "…" stands for what the reader fills in.
      const whole = code.replaceAll("…", " void 0;");
      expect(() => transformSync(whole, { loader: language as "ts" | "js", format: "esm" })).not.toThrow();
    }
  });
});

describe("the index of the documents", () => {
  it("names each page once, and the README leads to it", () => {
    const index = read("docs/README.md");
    const linked = [...index.matchAll(/\]\(([^)#]+\.md)\)/g)].map(([, link = ""]) => join("docs", link));
    const left = new Set(["docs/README.md", "CHANGELOG.md"]);
    const wanted = pages.filter((page) => !left.has(page) && !/^docs\/decisions\/\d/.test(page));
    for (const page of wanted)
      expect([page, linked.filter((link) => link === page).length]).toEqual([page, 1]);
    expect(read("README.md")).toContain("](docs/README.md)");
  });
});

describe("numbers in the documents", () => {
  it("are those of the code: bounds of streams", () => {
    const row = (option: string) =>
      new RegExp(`^\\| \`${option}\` \\|[^|]*\\| ([^|]*?) \\|`, "m").exec(read("docs/streams.md"))?.[1];
    const plain = (text = "") => Number(text.replaceAll(" ", ""));
    expect(plain(row("maxLength"))).toBe(STREAM_DEFAULTS.maxLength);
    expect(plain(row("ttlSeconds"))).toBe(STREAM_DEFAULTS.ttlSeconds);
    expect(plain(row("maxPayloadBytes"))).toBe(STREAM_DEFAULTS.maxPayloadBytes);
  });

  it("are those of the code: settings of queues", () => {
    const [, table = ""] = /^## Define$([^]*?)^## /m.exec(read("docs/queues.md")) ?? [];
    const rows = [...table.matchAll(/^\| (`.+?`) \| [^|]+ \| ([^|]+) \|$/gm)];
    const documented = new Map<string, string>();
    for (const [, names = "", values = ""] of rows)
      for (const [at, name] of names.replaceAll("`", "").split(", ").entries())
        documented.set(name, (values.split(", ").at(at) ?? "").replace(/ \(.*\)/, "").replaceAll(" ", ""));
    const { backoff, ...plain } = QUEUE_DEFAULTS;
    for (const [name, value] of Object.entries(plain))
      expect([name, documented.get(name)]).toEqual([name, value === null ? "none" : JSON.stringify(value)]);
    expect(rows.find(([, name]) => name === "`backoff`")?.[2]).toBe(Object.values(backoff).join(", "));
  });

  it("are those of the code: settings of pools", () => {
    const [, table = ""] = /^## Define$([^]*?)^## /m.exec(read("docs/pools.md")) ?? [];
    const documented = new Map<string, string>();
    for (const [, names = "", values = ""] of table.matchAll(/^\| (`.+?`) \| [^|]+ \| ([^|]+) \|$/gm))
      for (const [at, name] of names.replaceAll("`", "").split(", ").entries())
        documented.set(
          name,
          (values.split(", ").at(at) ?? "").replace(/ \(.*\)|: .*/, "").replaceAll(/[ `"]/g, ""),
        );
    for (const [name, value] of Object.entries(POOL_DEFAULTS))
      expect([name, documented.get(name)]).toEqual([name, String(value)]);
  });

  it("are those of the code: a worker's times", () => {
    const text = read("docs/guarantees.md");
    const { beatMs, leaseMs, stopGraceMs, backoffBaseMs, backoffCapMs, healthyMs, sweepMs } = DEFAULT_TIMINGS;
    expect(text).toContain(
      `a lease of ${leaseMs / 1000} s that the worker's supervisor renews every ${beatMs === 1000 ? "second" : "?"}`,
    );
    expect(text).toContain(`does not end by itself within ${stopGraceMs / 1000} s is killed`);
    expect(text).toContain(
      `after a pause: ${backoffBaseMs / 1000} s, doubling, at most ${backoffCapMs / 60_000} min; forgiven after a run of ${healthyMs / 60_000} min`,
    );
    expect(sweepMs).toBeLessThan(60_000);
  });

  it("are those of the code: FLEET_TIMINGS", () => {
    const rows = [
      ...read("docs/operations.md").matchAll(/^\| `(\w+)` \| [^|]+ \| (\d[\d ]*|`\[.*\]`) \|$/gm),
    ];
    const documented = rows.map(([, name, value = ""]) => [
      name,
      JSON.parse(value.replaceAll(/[` ]/g, "")) as unknown,
    ]);
    expect(Object.fromEntries(documented)).toEqual(DEFAULT_TIMINGS);
  });

  it("are those of the code: causes, budgets and limits of healing", () => {
    const text = read("docs/operations.md");
    const [, table = ""] = text.split("## Healing");
    const causes = [...table.matchAll(/^\| `([\w-]+)` \| [^|]+ \|$/gm)].map(([, cause]) => cause);
    expect(new Set(causes)).toEqual(new Set(HEAL_CAUSES));
    const [short, long] = DEFAULT_TIMINGS.budgets;
    const budgets = `${short?.failures} within ${(short?.windowMs ?? 0) / 60_000} min or ${long?.failures} within a day`;
    expect(long?.windowMs).toBe(86_400_000);
    expect(text).toContain(`failures are counted too: ${budgets}`);
    expect(read("docs/guarantees.md")).toContain(budgets.replace("within", "failures within"));
    const { blockedMs, stuckMs, leaseMs } = DEFAULT_TIMINGS;
    expect(text).toContain(`After ${blockedMs / 1000} s the process is killed.`);
    expect(text).toContain(`(${stuckMs / 1000} by default)`);
    expect(read("docs/guarantees.md")).toContain(`up to ${(leaseMs / 3000).toFixed(1)} s`);
  });
});

describe("commands in the documents", () => {
  it("are those that there are", async () => {
    const { stdout } = await runFleet(["--help"], { cwd: ROOT });
    const known = [...stdout.matchAll(/^ {2}(\w+) \[?/gm)]
      .map(([, name]) => name)
      .filter((name) => name !== "help" && name !== "fleet");
    const documented = [...read("docs/configuration.md").matchAll(/^\| `fleet (\w+)/gm)].map(
      ([, name]) => name,
    );
    const also = [...read("docs/configuration.md").matchAll(/^\| `fleet \w+.*?`, `fleet (\w+)/gm)].map(
      ([, name]) => name,
    );
    expect(known.length).toBeGreaterThan(8);
    expect(new Set([...documented, ...also])).toEqual(new Set(known));
  });

  it("have the options that they are said to have", async () => {
    const text = read("docs/configuration.md");
    const line = /^`up`, `worker` and `dev` take .*$/m.exec(text)?.[0] ?? "";
    const { stdout } = await runFleet(["worker", "--help"], { cwd: ROOT });
    const options = [...line.matchAll(/`(--[\w-]+)/g)].map(([, name = ""]) => name);
    expect(options.length).toBeGreaterThan(7);
    for (const option of options) expect(stdout).toContain(`${option} `);
  });
});
