// Where the URLs come from. The config file is a program: it may read the environment and files.
import { existsSync, readFileSync } from "node:fs";

/** Nobody without root's rights can listen there, so it is reliably down. */
const DOWN = "http://127.0.0.1:2/";
const DEFAULT_PORT = 4480;

export interface Settings {
  urls: string[];
  /** Seconds between two looks at one URL. */
  intervalSeconds: number;
  /** Slots of `url-pinger`. */
  slots: number;
  /** Port of the local endpoints; undefined when URLs were given. */
  localPort: number | undefined;
}

/**
 * `URL_MONITOR_URLS` (spaces between them), else the file `URL_MONITOR_FILE`, else `urls.txt` beside this file, else endpoints on
 * this machine, at `URL_MONITOR_PORT`.
 */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const given = givenUrls(env);
  const port = Number(env.URL_MONITOR_PORT ?? DEFAULT_PORT);
  return {
    urls: given ?? localUrls(port),
    intervalSeconds: Number(env.URL_MONITOR_INTERVAL_SECONDS ?? 1),
    slots: Number(env.URL_MONITOR_SLOTS ?? 2),
    localPort: given === undefined ? port : undefined,
  };
}

function givenUrls(env: NodeJS.ProcessEnv): string[] | undefined {
  if (env.URL_MONITOR_URLS) return distinct(env.URL_MONITOR_URLS);
  if (env.URL_MONITOR_FILE) return readUrls(env.URL_MONITOR_FILE);
  const beside = new URL("urls.txt", import.meta.url);
  return existsSync(beside) ? readUrls(beside) : undefined;
}

/** One URL per line; empty lines and what follows a `#` at the start of a line or after a space do not count. */
function readUrls(file: string | URL): string[] {
  const urls = distinct(readFileSync(file, "utf8").replace(/(^|\s)#.*$/gm, ""));
  if (urls.length === 0) throw new Error(`no URL in ${String(file)}`);
  return urls;
}

function distinct(text: string): string[] {
  return [...new Set(text.split(/\s+/).filter((url) => url !== ""))];
}

function localUrls(port: number): string[] {
  const paths = ["healthy", "slow", "failing", "flapping"];
  return [...paths.map((path) => `http://127.0.0.1:${port}/${path}`), DOWN];
}
