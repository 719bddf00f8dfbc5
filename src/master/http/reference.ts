import { readFile } from "node:fs/promises";
import type { Context, Hono } from "hono";
import { ownFile } from "../../internal/own-files.ts";

const PAGE = "/api/docs";
const FOLDER = ownFile("master/reference/");

/** Served without a token: they hold nothing of anybody, and the page asks for one before it loads the API's description. */
const FILES: Readonly<Record<string, string>> = {
  "index.html": "text/html; charset=utf-8",
  "reference.css": "text/css; charset=utf-8",
  "reference.js": "text/javascript; charset=utf-8",
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
};

/** Only what this master serves is loaded and asked, nothing is run that stands in the page, and no other page may frame it. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The reference page of the API, as static files. */
export function addReference(app: Hono): void {
  // Its links are relative, so that it also works below a proxy's path.
  app.get(PAGE, (c) =>
    new URL(c.req.url).pathname.endsWith("/") ? c.redirect("../docs", 308) : send(c, "index.html"),
  );
  app.get(`${PAGE}/:file`, (c) => {
    const file = c.req.param("file");
    return Object.hasOwn(FILES, file) && file !== "index.html" ? send(c, file) : c.notFound();
  });
}

async function send(c: Context, file: string): Promise<Response> {
  const content = await readFile(new URL(file, FOLDER));
  return c.body(content, 200, {
    "content-type": FILES[file] as string,
    "content-security-policy": POLICY,
  });
}
