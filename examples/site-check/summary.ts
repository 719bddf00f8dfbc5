// From findings to a summary: broken links with the pages they stand on, redirects, slow pages. Pure.
import type { Finding, Link } from "./contracts.ts";

export interface Broken {
  url: string;
  /** Status, or the reason why there was none. */
  why: string;
  /** Pages that point there. */
  on: { page: string; text: string }[];
}

export interface Summary {
  pages: number;
  links: number;
  broken: Broken[];
  redirects: { url: string; to: string; on: number }[];
  slow: { url: string; ms: number; title: string }[];
  /** Pages that `robots.txt` asks not to read. */
  disallowed: number;
}

const MOST_SLOW = 10;

/** Keeps findings by address: one that comes twice (a task may run twice) counts once. */
export class Findings {
  readonly #byUrl = new Map<string, Finding>();

  /** False when it was known. */
  add(finding: Finding): boolean {
    if (this.#byUrl.has(finding.url)) return false;
    this.#byUrl.set(finding.url, finding);
    return true;
  }

  get size(): number {
    return this.#byUrl.size;
  }

  summary(): Summary {
    const findings = [...this.#byUrl.values()];
    const pages = findings.filter((finding) => finding.kind === "page");
    const pointing = new Map<string, { page: string; text: string }[]>();
    for (const page of pages) {
      for (const { url, text } of page.links) push(pointing, url, { page: page.url, text });
    }
    const on = (url: string) => (pointing.get(url) ?? []).toSorted((a, b) => order(a.page, b.page));
    return {
      pages: pages.length,
      links: findings.length - pages.length,
      broken: findings
        .filter(isBroken)
        .map((finding) => ({ url: finding.url, why: whyBroken(finding), on: on(finding.url) }))
        .toSorted((a, b) => order(a.url, b.url)),
      redirects: findings
        .flatMap(({ url, redirectedTo }) =>
          redirectedTo === null ? [] : [{ url, to: redirectedTo, on: on(url).length }],
        )
        .toSorted((a, b) => order(a.url, b.url)),
      slow: pages
        .toSorted((a, b) => b.ms - a.ms || order(a.url, b.url))
        .slice(0, MOST_SLOW)
        .map(({ url, ms, title }) => ({ url, ms, title })),
      disallowed: pages.filter(({ disallowed }) => disallowed).length,
    };
  }
}

function isBroken(finding: Finding): boolean {
  if (finding.kind === "page" && finding.disallowed) return false;
  return finding.status === 0 || finding.status >= 400;
}

function whyBroken({ status, error }: Finding): string {
  return status === 0 ? (error ?? "no answer") : String(status);
}

function push<T>(map: Map<string, T[]>, key: string, value: T): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

/** By code points: the same everywhere. */
function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What a page's links are for this check: pages of the same site to be read, all else to be asked for. */
export function sortLinks(links: readonly Link[], start: string): { pages: string[]; others: string[] } {
  const site = new URL(start);
  const folder = site.pathname.replace(/[^/]*$/, "");
  const pages: string[] = [];
  const others: string[] = [];
  for (const { url } of links) {
    const { host, pathname } = new URL(url);
    const inside = host === site.host && pathname.startsWith(folder);
    (inside && isPage(pathname) ? pages : others).push(url);
  }
  return { pages, others };
}

function isPage(pathname: string): boolean {
  const name = pathname.slice(pathname.lastIndexOf("/") + 1);
  return !name.includes(".") || /\.(x?html?|php|aspx?|jsp)$/i.test(name);
}
