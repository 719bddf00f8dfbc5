// The report as text and as a page. Pure.
import type { Summary } from "./summary.ts";

const MOST_PLACES = 5;

export function renderText({ pages, links, broken, redirects, slow, disallowed }: Summary): string {
  const lines = [
    `${count(pages, "page")} read, ${count(links, "other address", "other addresses")} asked for`,
  ];
  if (disallowed > 0) lines.push(`${count(disallowed, "page")} not read: robots.txt asks not to`);
  lines.push("", broken.length === 0 ? "No broken links." : `${count(broken.length, "broken link")}:`);
  const width = Math.max(0, ...broken.map(({ why }) => why.length));
  for (const { url, why, on } of broken) {
    lines.push(`  ${why.padEnd(width)}  ${url}`);
    for (const { page, text } of on.slice(0, MOST_PLACES))
      lines.push(`  ${" ".repeat(width)}    on ${page}${text === "" ? "" : ` (“${text}”)`}`);
    if (on.length > MOST_PLACES) lines.push(`  ${" ".repeat(width)}    and ${on.length - MOST_PLACES} more`);
  }
  if (redirects.length > 0) {
    lines.push("", `${count(redirects.length, "redirect")}:`);
    for (const { url, to, on } of redirects) lines.push(`  ${url} → ${to}  (${count(on, "place")})`);
  }
  lines.push("", "Slowest pages:");
  for (const { url, ms } of slow) lines.push(`  ${String(ms).padStart(6)} ms  ${url}`);
  return `${lines.join("\n")}\n`;
}

export function renderHtml(summary: Summary): string {
  const { pages, links, broken, redirects, slow, disallowed } = summary;
  const brokenRows = broken.map(({ url, why, on }) => {
    const places = on
      .slice(0, MOST_PLACES)
      .map(({ page, text }) => `<li>${anchor(page)} ${escape(text)}</li>`);
    const more = on.length > MOST_PLACES ? `<li>and ${on.length - MOST_PLACES} more</li>` : "";
    return `<tr><td>${escape(why)}</td><td>${anchor(url)}<ul>${places.join("")}${more}</ul></td></tr>`;
  });
  const redirectRows = redirects.map(
    ({ url, to, on }) => `<tr><td>${on}</td><td>${anchor(url)} → ${anchor(to)}</td></tr>`,
  );
  const slowRows = slow.map(
    ({ url, ms, title }) => `<tr><td>${ms} ms</td><td>${anchor(url)} ${escape(title)}</td></tr>`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Site check: ${broken.length} broken</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #222; background: #fff }
  table { border-collapse: collapse; width: 100% } td { border-top: 1px solid #ddd; padding: .3rem .6rem; vertical-align: top; overflow-wrap: anywhere }
  td:first-child { white-space: nowrap; width: 1% } ul { margin: .2rem 0; font-size: .85em }
  @media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } td { border-color: #444 } a { color: #8bf } }
</style>
<h1>Site check</h1>
<p>${count(pages, "page")} read, ${count(links, "other address", "other addresses")} asked for${disallowed > 0 ? `, ${disallowed} not read because of robots.txt` : ""}.</p>
${section("Broken links", brokenRows, "None.")}
${section("Redirects", redirectRows, "None.")}
${section("Slowest pages", slowRows, "None.")}
</html>
`;
}

function section(title: string, rows: readonly string[], none: string): string {
  return `<h2>${title} (${rows.length})</h2>\n${rows.length === 0 ? `<p>${none}</p>` : `<table>\n${rows.join("\n")}\n</table>`}`;
}

function anchor(url: string): string {
  return `<a href="${escape(url)}">${escape(url)}</a>`;
}

function escape(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}
