import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ownFile, ownFolders, ownProgram } from "./own-files.ts";

const ROOT = new URL("../../", import.meta.url).href;

describe("own files", () => {
  it("lie beside the code that runs", () => {
    expect(ownFile("store/sqlite/migrations/001-initial.sql").href).toBe(
      `${ROOT}src/store/sqlite/migrations/001-initial.sql`,
    );
    expect(readFileSync(ownFile("internal/own-files.test.ts"), "utf8")).toContain("lie beside the code");
  });

  it("are started from the build only", () => {
    expect(ownProgram("worker/child-main.js").href).toBe(`${ROOT}dist/worker/child-main.js`);
  });

  it("lie in two folders", () => {
    expect(ownFolders().map(({ href }) => href)).toEqual([`${ROOT}dist/`, `${ROOT}src/`]);
    expect(existsSync(ownFolders()[1] as URL)).toBe(true);
  });
});
