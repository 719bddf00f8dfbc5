// The files of the page /api/docs that come from swagger-ui: only its styles and its script, and the licences of what is in them.
import { cpSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const FILES = {
  "swagger-ui.css": "swagger-ui.css",
  "swagger-ui-bundle.js": "swagger-ui-bundle.js",
  "swagger-ui-bundle.js.LICENSE.txt": "swagger-ui-bundle.js.LICENSE.txt",
  LICENSE: "swagger-ui.LICENSE.txt",
  NOTICE: "swagger-ui.NOTICE.txt",
};

/** Puts them beside the page's own files in a build at `dist`. */
export function copyReferenceFiles(dist) {
  const from = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
  const to = join(dist, "master", "reference");
  mkdirSync(to, { recursive: true });
  for (const [name, as] of Object.entries(FILES)) cpSync(join(from, name), join(to, as));
}
