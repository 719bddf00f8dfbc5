import { fileURLToPath } from "node:url";
import { isFleetError } from "../errors.ts";
import { ownFolders } from "../internal/own-files.ts";

const OWN = ownFolders().flatMap((folder) => [fileURLToPath(folder), folder.href]);

/** Where a package is missing, its name says more than the folder of builds from which Node looked for it. */
const MISSING = /^Cannot find package '([^']+)' imported from /;

/** A thrown thing in words, with the part of its stack that lies in the user's files. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error))
    return `threw ${typeof error === "string" ? JSON.stringify(error) : String(error)}`;
  const missing = MISSING.exec(error.message)?.[1];
  if (missing !== undefined)
    return `package "${missing}" cannot be found; install it: npm install ${missing}`;
  const title =
    isFleetError(error) || error.name === "Error" ? error.message : `${error.name}: ${error.message}`;
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line) && isUsers(line));
  return [title, ...frames.slice(0, 10).map((line) => `    ${line.trim()}`)].join("\n");
}

function isUsers(frame: string): boolean {
  return !/\(?node:|processTicksAndRejections/.test(frame) && !OWN.some((path) => frame.includes(path));
}
