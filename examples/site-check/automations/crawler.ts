// Reads one page per task, hands on what it points to, and tells the report.
import { type Context, defineBatch, RetryAfter } from "fleet-framework";
import { z } from "zod";
import { CRAWLER, LINK_CHECKER, REPORT, type Link, type PageFinding } from "../contracts.ts";
import { ask, TryLater } from "../fetching.ts";
import { readPage } from "../html.ts";
import { once } from "../once.ts";
import { mayRead } from "../robots.ts";
import { sortLinks } from "../summary.ts";

const Config = z.object({
  check: z.string(),
  start: z.url(),
  maxDepth: z.number().int().min(0),
  external: z.boolean(),
  pauseSeconds: z.number().min(0),
});
type Config = z.infer<typeof Config>;

export default defineBatch("crawler", {
  config: Config,
  tasks: CRAWLER,
  uses: { submit: [CRAWLER, LINK_CHECKER, REPORT] },
  async runOne(task, ctx) {
    const { url, depth } = task.payload;
    const allowed = await mayRead(url, ctx.signal);
    const page = allowed ? await read(url, ctx.signal, task.attempt >= 3) : NOT_READ;
    const { title, links } =
      page.html === null ? { title: "", links: [] } : readPage(page.html, page.redirectedTo ?? url);
    // Before it says that it is done: what this page points to is never lost, and a second time it changes nothing.
    if (leadsOn(page.redirectedTo, ctx.config)) await handOn(ctx, links, depth);
    const { status, ms, redirectedTo, error, bytes } = page;
    const finding: PageFinding = {
      kind: "page",
      url,
      depth,
      status,
      ms,
      redirectedTo,
      error,
      title,
      bytes,
      links,
      disallowed: !allowed,
    };
    await ctx.submit(REPORT, finding, { id: `page-${task.id}` });
    if (ctx.config.pauseSeconds > 0) await ctx.sleep(ctx.config.pauseSeconds);
  },
});

const NOT_READ = {
  status: 0,
  ms: 0,
  redirectedTo: null,
  error: "disallowed by robots.txt",
  html: null,
  bytes: 0,
};

async function read(url: string, signal: AbortSignal, last: boolean) {
  try {
    const page = await ask(url, "GET", signal);
    // A host that does not answer may be starting: it is broken only when it still does not.
    if (page.status === 0 && !last) throw new RetryAfter(2);
    return page;
  } catch (error) {
    if (!(error instanceof TryLater)) throw error;
    // Asked to come later: this task waits in its queue, and its slot reads something else.
    if (!last) throw new RetryAfter(error.seconds);
    return { ...NOT_READ, error: error.message };
  }
}

/** A page that leads away from the site is not read on. */
function leadsOn(redirectedTo: string | null, { start }: Config): boolean {
  return redirectedTo === null || new URL(redirectedTo).host === new URL(start).host;
}

async function handOn(
  ctx: Pick<Context<Config>, "queue" | "config">,
  links: readonly Link[],
  depth: number,
): Promise<void> {
  const { check, start, maxDepth, external } = ctx.config;
  const { host } = new URL(start);
  const { pages, others } = sortLinks(links, start);
  const next = depth < maxDepth ? pages.map((url) => ({ url, depth: depth + 1 })) : [];
  for (const some of chunks(next)) await ctx.queue(CRAWLER).submitMany(some, ({ url }) => once(check, url));
  const asked = others.filter((url) => external || new URL(url).host === host).map((url) => ({ url }));
  for (const some of chunks(asked))
    await ctx.queue(LINK_CHECKER).submitMany(some, ({ url }) => once(check, url));
}

function chunks<T>(list: readonly T[], size = 500): T[][] {
  const parts: T[][] = [];
  for (let at = 0; at < list.length; at += size) parts.push(list.slice(at, at + size));
  return parts;
}
