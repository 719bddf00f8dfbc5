// Short (`npm test`): the site-check example on a site of 1 100 pages with known faults: killed half way, gone on with, compared with a plain crawl.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test, vi } from "vitest";
import type { Finding } from "../examples/site-check/contracts.ts";
import { readPage } from "../examples/site-check/html.ts";
import { renderHtml, renderText } from "../examples/site-check/render.ts";
import { Findings, sortLinks, type Summary } from "../examples/site-check/summary.ts";
import { graphLines } from "./support/graph.ts";

const RUN = fileURLToPath(new URL("../examples/site-check/run.mjs", import.meta.url));
const PAGES = 1100;
/** Read off the code of `examples/site-check`: each of its uses, once. Its script is no automation, and declares nothing. */
const GRAPH = [
  "automation:crawler -submit-> queue:crawler: declared, observed",
  "automation:crawler -submit-> queue:link-checker: declared, observed",
  "automation:crawler -submit-> queue:report: declared, observed",
  "automation:link-checker -submit-> queue:report: declared, observed",
  "external:site-check -submit-> queue:crawler: observed",
  "queue:crawler -run-> automation:crawler: declared, observed",
  "queue:link-checker -run-> automation:link-checker: declared, observed",
  "queue:report -run-> automation:report: declared, observed",
];

describe("reading a page", () => {
  it("finds what it points to, each address once and whole, and its title", () => {
    const html = `<!doctype html><title>A &amp; B</title><base href="/docs/">
      <a href="one.html#part">One</a> <a href="one.html">again</a> <img src="../logo.png">
      <link rel="canonical" href="https://other.example/"> <link rel="stylesheet" href="a.css">
      <a href="mailto:a@example.org">mail</a> <a href="javascript:void 0">no</a> <a href="http://[">bad</a>
      <!-- <a href="commented.html">no</a> --> <a href="//cdn.example/x">cdn</a>`;
    expect(readPage(html, "https://site.example/deep/page.html")).toEqual({
      title: "A & B",
      links: [
        { url: "https://site.example/docs/one.html", text: "One" },
        { url: "https://site.example/logo.png", text: "" },
        { url: "https://site.example/docs/a.css", text: "" },
        { url: "https://cdn.example/x", text: "cdn" },
      ],
    });
  });

  it("tells pages of the site from what is only asked for", () => {
    const links = ["/docs/a.html", "/docs/b/", "/docs/c.png", "/other/d.html"].map(
      (path) => `https://s.example${path}`,
    );
    const all = [...links, "https://elsewhere.example/docs/a.html"].map((url) => ({ url, text: "" }));
    expect(sortLinks(all, "https://s.example/docs/index.html")).toEqual({
      pages: links.slice(0, 2),
      others: [...links.slice(2), "https://elsewhere.example/docs/a.html"],
    });
  });
});

describe("the summary", () => {
  const page = (url: string, more: object = {}): Finding => ({
    kind: "page",
    url,
    depth: 0,
    status: 200,
    ms: 5,
    redirectedTo: null,
    error: null,
    title: url,
    bytes: 1,
    links: [],
    disallowed: false,
    ...more,
  });

  it("names broken links with the pages they stand on, and counts a finding that comes twice once", () => {
    const findings = new Findings();
    const home = page("https://s.example/", {
      links: [{ url: "https://s.example/gone", text: "<gone>" }],
      ms: 90,
    });
    expect([findings.add(home), findings.add(home)]).toEqual([true, false]);
    findings.add(page("https://s.example/gone", { status: 404 }));
    findings.add({
      kind: "link",
      url: "https://x.example/",
      status: 0,
      ms: 1,
      redirectedTo: null,
      error: "ENOTFOUND",
    });
    findings.add(page("https://s.example/private", { status: 0, disallowed: true, error: "disallowed" }));
    const summary = findings.summary();
    expect(summary).toMatchObject({ pages: 3, links: 1, disallowed: 1 });
    expect(summary.broken).toEqual([
      { url: "https://s.example/gone", why: "404", on: [{ page: "https://s.example/", text: "<gone>" }] },
      { url: "https://x.example/", why: "ENOTFOUND", on: [] },
    ]);
    expect(summary.slow[0]).toMatchObject({ url: "https://s.example/", ms: 90 });
    expect(renderText(summary)).toContain("2 broken links:\n  404        https://s.example/gone\n");
    expect(renderHtml(summary)).toContain("&lt;gone&gt;");
    expect(renderHtml(summary)).not.toContain("<gone>");
  });
});

describe("a site of 1 100 pages", () => {
  let server: Server;
  let origin: string;
  const asked = new Map<string, number>();

  beforeAll(async () => {
    server = createServer((request, response) => {
      const path = request.url as string;
      asked.set(path, (asked.get(path) ?? 0) + 1);
      const { status, headers, body } = answerOf(path);
      // Slow enough that there is a middle to be killed in.
      setTimeout(() => response.writeHead(status, headers).end(body), 10);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test("is checked, killed half way, and gone on with: no finished page is read again, no fault is missed", async () => {
    const out = mkdtempSync(join(tmpdir(), "site-check-"));
    onTestFinished(() => rmSync(out, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));
    const findings = () =>
      existsSync(join(out, "findings.jsonl"))
        ? readFileSync(join(out, "findings.jsonl"), "utf8").split("\n").slice(0, -1)
        : [];

    const first = startCheck(origin, out);
    await vi.waitFor(() => expect(findings().length).toBeGreaterThan(PAGES / 3), {
      timeout: 60_000,
      interval: 50,
    });
    // All of it, at once: this script and the worker with its children.
    for (const pid of [first.pid as number, ...workerOf(first.pid as number)]) process.kill(pid, "SIGKILL");
    await once(first, "exit");
    const finished = findings().map((line) => new URL((JSON.parse(line) as Finding).url).pathname);
    expect(finished.length).toBeLessThan(PAGES);
    asked.clear();

    const second = startCheck(origin, out);
    const text = { out: "", err: "" };
    second.stdout?.on("data", (chunk: Buffer) => (text.out += chunk.toString()));
    second.stderr?.on("data", (chunk: Buffer) => (text.err += chunk.toString()));
    const [code] = (await once(second, "exit")) as [number];
    expect({ code, err: text.err }).toMatchObject({ code: 1 });
    expect(text.err).toContain("going on with the check");
    expect(text.err).toMatch(/pages read, \d+ to read; .* to go/);

    // What was in the report is not asked for again.
    expect(finished.filter((path) => asked.has(path) && path !== "/robots.txt")).toEqual([]);
    const plain = await plainCrawl(origin);
    const summary = JSON.parse(readFileSync(join(out, "report.json"), "utf8")) as Summary;
    expect(summary.pages).toBe(plain.pages);
    expect(summary.broken.map(({ url }) => url)).toEqual(plain.broken);
    expect(plain.broken).toHaveLength(12);
    expect(summary.redirects).toEqual([{ url: `${origin}/old`, to: `${origin}/p/1`, on: 1 }]);
    expect(text.out).toContain("12 broken links:");
    expect(readFileSync(join(out, "report.html"), "utf8")).toContain("Broken links (12)");
    expect(await graphLines(["--store", `sqlite:${join(out, "fleet.db")}`], out)).toEqual(GRAPH);
  }, 180_000);

  /** The same site, crawled in the plainest way. */
  async function plainCrawl(start: string): Promise<{ pages: number; broken: string[] }> {
    const seen = new Set([`${start}/`]);
    const broken: string[] = [];
    let pages = 0;
    for (const url of seen) {
      const { status, headers, body } = answerOf(url.slice(start.length));
      if (sortLinks([{ url, text: "" }], `${start}/`).pages.length > 0) pages += 1;
      if (status >= 400) broken.push(url);
      const html = status === 301 ? answerOf(headers.location as string).body : body;
      const isPage = !url.endsWith(".png") && status < 400;
      if (isPage) for (const link of readPage(html, url).links) seen.add(link.url);
    }
    return { pages, broken: broken.toSorted((a, b) => (a < b ? -1 : 1)) };
  }
});

/** Every page points to a few others; each hundredth to something that is not there. */
function answerOf(path: string): { status: number; headers: Record<string, string>; body: string } {
  const html = (body: string) => ({ status: 200, headers: { "content-type": "text/html" }, body });
  if (path === "/robots.txt") return { status: 404, headers: {}, body: "" };
  if (path === "/")
    return html(`<title>Home</title><a href="/p/0">first</a> <a href="/old">moved</a> <img src="/logo.png">`);
  if (path === "/old") return { status: 301, headers: { location: "/p/1" }, body: "" };
  if (path === "/late.png") return { status: 200, headers: { "content-type": "image/png" }, body: "" };
  const n = Number(/^\/p\/(\d+)$/.exec(path)?.[1] ?? Number.NaN);
  if (!(n < PAGES - 2)) return { status: 404, headers: { "content-type": "text/html" }, body: "gone" };
  const next = [2 * n + 1, 2 * n + 2, n + 1, Math.floor(n / 2)].filter((other) => other < PAGES - 2);
  const faults = n % 100 === 0 ? `<a href="/missing-${n}">old news</a>` : "";
  // Found only after the kill, so that something is asked for in the second run, too.
  const last = n === PAGES - 3 ? `<img src="/late.png">` : "";
  return html(
    `<title>Page ${n}</title>${next.map((other) => `<a href="/p/${other}">${other}</a>`).join(" ")} ${faults}${last}`,
  );
}

function startCheck(url: string, out: string): ChildProcess {
  const child = spawn(process.execPath, [RUN, url, "--out", out, "--pause", "0", "--slots", "8"], {
    stdio: ["ignore", "pipe", "pipe"],
    env: Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(FLEET_|NODE_OPTIONS|VITEST)/.test(name)),
    ),
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

/** The worker that a check has started, and nothing else. */
function workerOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter(Boolean)
    .map(Number);
}
