// References in a config become the values that they stand for, right before the config is parsed.
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { check, payloadError } from "../contracts/validate.ts";
import { messageOf, type PayloadIssue } from "../errors.ts";
import {
  isForbidden,
  mapTexts,
  type Reference,
  referenceOf,
  referencesIn,
  unescaped,
} from "../protocol/config-reference.ts";
import { hideIn, rememberSecret } from "./config-secrets.ts";
import type { Automation } from "./definition.ts";

/** Bytes of a file that a config refers to. */
const MAX_FILE = 65_536;

/**
 * The config as the automation's schema gives it. Throws `FLEET_PAYLOAD_INVALID` where it does not fit or a reference leads nowhere; the
 * message names the field and shows no value that came by reference.
 */
export async function parseConfig(
  { name, options }: Pick<Automation, "name" | "options">,
  config: unknown,
): Promise<unknown> {
  const where = `config of "${name}"`;
  const { resolved, secrets, issues } = await resolve(config);
  if (issues.length > 0) throw payloadError(where, issues);
  if (options.config === undefined) return resolved;
  const schema = options.config;
  const checked = await Promise.resolve(resolved)
    .then((value) => check(schema, value))
    .catch((error: unknown) => {
      throw new Error(`${where}: ${hideIn(messageOf(error), secrets)}`);
    });
  if (checked.ok) return checked.value;
  throw payloadError(
    where,
    checked.issues.map(({ pointer, message }) => ({ pointer, message: hideIn(message, secrets) })),
  );
}

interface Resolved {
  resolved: unknown;
  /** References by the value that each stands for. */
  secrets: ReadonlyMap<string, string>;
  issues: PayloadIssue[];
}

async function resolve(config: unknown): Promise<Resolved> {
  const values = new Map<string, string>();
  const secrets = new Map<string, string>();
  const issues: PayloadIssue[] = [];
  for (const { pointer, text, reference } of referencesIn(config)) {
    const found = values.has(text) ? { value: values.get(text) as string } : await read(reference);
    if ("wrong" in found) {
      issues.push({ pointer, message: `${text}: ${found.wrong}` });
      continue;
    }
    values.set(text, found.value);
    secrets.set(found.value, text);
    rememberSecret(found.value, text);
  }
  const resolved = mapTexts(config, (text) =>
    referenceOf(text) === undefined ? unescaped(text) : values.get(text),
  );
  return { resolved, secrets, issues };
}

async function read(reference: Reference): Promise<{ value: string } | { wrong: string }> {
  if (isForbidden(reference)) return { wrong: "variables of Fleet's own are not for configs" };
  if (reference.kind === "env") {
    const value = process.env[reference.name];
    return value === undefined
      ? { wrong: "there is no such variable in the environment that the automation sees" }
      : { value };
  }
  return readText(reference.path);
}

async function readText(path: string): Promise<{ value: string } | { wrong: string }> {
  try {
    // A pipe that nobody writes to must not hold the slot up.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const found = await file.stat();
      if (!found.isFile()) return { wrong: "it is no file" };
      if (found.size > MAX_FILE) return { wrong: `it has more than ${MAX_FILE} bytes` };
      // The line feed that editors put at the end is none of it.
      return { value: (await file.readFile("utf8")).replace(/\r?\n$/, "") };
    } finally {
      await file.close();
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return { wrong: "there is no such file" };
    if (code === "EACCES" || code === "EPERM") return { wrong: "this user may not read it" };
    return { wrong: `it cannot be read (${code ?? "unknown error"})` };
  }
}
