import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { refuse } from "../contracts/options.ts";
import { FleetError, messageOf } from "../errors.ts";

const FILE = "token";
const MIN_LENGTH = 16;
const SHAPE = /^[\x21-\x7e]+$/;

export interface AdminToken {
  token: string;
  /** Where it is kept; undefined where it was given. */
  file?: string;
  /** Made just now: there was none. */
  fresh: boolean;
  /** Others than the file's owner may read it: somebody has put it there so, or has changed it. */
  exposed: boolean;
}

/**
 * The master's admin token: the one that was given (`FLEET_TOKEN`), else the one that is kept in the data folder, else a new one of 256
 * random bits, kept there and readable by its owner only (0600). Throws `FLEET_OPTION_INVALID` for one that is too short to be safe.
 */
export function adminToken(given: string | undefined, dataDir: string): AdminToken {
  if (given !== undefined && given !== "")
    return { token: checkToken(given, "FLEET_TOKEN"), fresh: false, exposed: false };
  const file = tokenFile(dataDir);
  const kept = readToken(dataDir);
  if (kept !== undefined)
    return { token: checkToken(kept, file), file, fresh: false, exposed: isExposed(file) };
  const token = `flt_a_${randomBytes(4).toString("hex")}_${randomBytes(32).toString("base64url")}`;
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    writeFileSync(file, `${token}\n`, { mode: 0o600, flag: "wx" });
    chmodSync(file, 0o600);
  } catch (error) {
    // Two masters that begin together in one folder share the token of the first.
    const other = readToken(dataDir);
    if (other !== undefined) return { token: other, file, fresh: false, exposed: isExposed(file) };
    throw new FleetError(
      "FLEET_CONFIG_INVALID",
      `cannot keep the admin token in ${file}: ${messageOf(error)}`,
      {
        cause: error,
      },
    );
  }
  return { token, file, fresh: true, exposed: false };
}

export function tokenFile(dataDir: string): string {
  return join(dataDir, FILE);
}

function isExposed(file: string): boolean {
  // Elsewhere the mode says nothing of who may read.
  if (process.platform === "win32") return false;
  const found = statSync(file, { throwIfNoEntry: false });
  return found !== undefined && (found.mode & 0o077) !== 0;
}

/** The token that a master on this machine keeps in that folder. */
export function readToken(dataDir: string): string | undefined {
  try {
    const text = readFileSync(tokenFile(dataDir), "utf8").trim();
    return text === "" ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Never repeats the token. */
export function checkToken(token: string, where: string): string {
  if (token.length >= MIN_LENGTH && token.length <= 512 && SHAPE.test(token)) return token;
  return refuse(
    where,
    `a token of ${MIN_LENGTH} to 512 printable characters without blanks`,
    `(${token.length} characters)`,
  );
}
