// Short (`npm test`): the reference page at /api/docs, as the built package serves it. Needs dist/ (`npm run build`).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeProject, startFleet } from "./support/cli.ts";

describe("the reference page", () => {
  it(
    "is there without a token, runs nothing but its own files, and asks for the token",
    { timeout: 30_000 },
    async () => {
      const cwd = makeProject();
      const master = startFleet(["master", "--port", "0"], { cwd });
      await master.until((text) => text.includes("master at http:"));
      const url = /master at (http:\S+)/.exec(master.stderr())?.[1] ?? "";
      const page = await fetch(`${url}/api/docs/`);
      // Its links are relative: the address with a slash leads to the one without.
      expect(page.url).toBe(`${url}/api/docs`);
      expect(page.status).toBe(200);
      expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
      const policy = page.headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self';");
      expect(policy).not.toContain("unsafe");
      const html = await page.text();
      expect(html).toContain('<input id="token"');
      expect(html).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|\sstyle=/);

      // Without an icon of its own the browser asks for /favicon.ico, which is not for those without a token.
      expect(html).toContain('<link rel="icon" href="data:," />');
      expect(policy).toMatch(/img-src [^;]*data:/);
      const links = [...html.matchAll(/(?:src|href)="(?!data:)([^"]+)"/g)].map(([, link = ""]) => link);
      expect(links).toHaveLength(4);
      for (const link of links) {
        const file = await fetch(new URL(link, page.url));
        expect({ link, status: file.status }).toEqual({ link, status: 200 });
        expect(file.headers.get("content-type")).toMatch(
          link.endsWith(".css") ? /^text\/css/ : /^text\/javascript/,
        );
        expect(file.headers.get("x-content-type-options")).toBe("nosniff");
        expect((await file.text()).length).toBeGreaterThan(100);
      }
      const script = await (await fetch(new URL("docs/reference.js", page.url))).text();
      const description = /fetch\("([^"]+)"/.exec(script)?.[1] ?? "";
      expect((await fetch(new URL(description, page.url))).status).toBe(401);
      const token = readFileSync(join(cwd, ".fleet/token"), "utf8").trim();
      const headers = { authorization: `Bearer ${token}` };
      const document = (await (await fetch(new URL(description, page.url), { headers })).json()) as object;
      expect(document).toMatchObject({ openapi: "3.1.0" });
      // Nothing else of that folder is given out.
      for (const other of ["index.html", "swagger-ui.LICENSE.txt", "..%2fmaster.js", "constructor"])
        expect((await fetch(`${url}/api/docs/${other}`, { headers })).status).toBe(404);
      master.signal("SIGTERM");
      expect(await master.ended).toBe(0);
    },
  );
});
