import { FleetError } from "../../errors.ts";

export interface Address {
  host: string;
  port: number;
}

export function addressText({ host, port }: Address): string {
  return `${host}:${port}`;
}

/** A store address, taken apart. */
export interface Target {
  cluster: boolean;
  /** One for a single server; the seeds of a cluster. */
  addresses: readonly Address[];
  tls: boolean;
  username?: string;
  password?: string;
  database: number;
  /** The address without user and password, for people. */
  shown: string;
  /** Replaces whatever of the credentials stands in a text. */
  scrub(text: string): string;
}

const SCHEMES = new Set(["redis", "rediss", "redis+cluster"]);
const DEFAULT_PORT = 6379;

/** Reads `redis://`, `rediss://` and `redis+cluster://seed:port[,seed:port]`. No error of it shows the user information. */
export function parseTarget(url: string): Target {
  const scheme = /^([a-z+]+):\/\//.exec(url)?.[1] ?? "";
  if (scheme === "redis+sentinel") {
    throw new FleetError(
      "FLEET_NOT_AVAILABLE",
      "redis+sentinel:// is not available in this version; use redis:// or redis+cluster://",
    );
  }
  if (!SCHEMES.has(scheme)) {
    throw invalid("the scheme must be redis://, rediss:// or redis+cluster://");
  }
  // A password may hold an unescaped "/" or ":", so the host begins behind the last "@".
  const rest = url.slice(scheme.length + 3);
  const at = rest.lastIndexOf("@");
  const userinfo = at < 0 ? "" : rest.slice(0, at);
  const [hosts = "", path = "", ...more] = rest.slice(at + 1).split("/");
  if (more.length > 0 || /[?#]/.test(path + hosts))
    throw invalid("there must be nothing behind the database number");
  const cluster = scheme === "redis+cluster";
  const addresses = hosts.split(",").map(parseAddress);
  if (!cluster && addresses.length > 1) throw invalid("only redis+cluster:// takes more than one address");
  const colon = userinfo.indexOf(":");
  const username = decode(colon < 0 ? userinfo : userinfo.slice(0, colon));
  const password = decode(colon < 0 ? "" : userinfo.slice(colon + 1));
  const database = parseDatabase(path, cluster);
  return {
    cluster,
    addresses,
    tls: scheme === "rediss",
    ...(username === "" ? {} : { username }),
    ...(password === "" ? {} : { password }),
    database,
    shown: `${scheme}://${hosts}${database === 0 ? "" : `/${database}`}`,
    scrub: scrubber(userinfo, password),
  };
}

function parseAddress(text: string): Address {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]*))(?::(\d{1,5}))?$/.exec(text);
  const port = match?.[3] === undefined ? DEFAULT_PORT : Number(match[3]);
  if (match === null || port < 1 || port > 65_535) throw invalid("host and port cannot be read");
  return { host: match[1] ?? (match[2] || "127.0.0.1"), port };
}

function parseDatabase(path: string, cluster: boolean): number {
  if (path === "") return 0;
  if (!/^\d{1,6}$/.test(path)) throw invalid("the database must be a number, as in redis://host:6379/1");
  if (cluster && Number(path) !== 0) throw invalid("a cluster has database 0 only");
  return Number(path);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("a '%' in user or password must be written as %25");
  }
}

function scrubber(userinfo: string, password: string): (text: string) => string {
  const colon = userinfo.indexOf(":");
  const written = colon < 0 ? "" : userinfo.slice(colon + 1);
  const secrets = [userinfo.includes(":") ? userinfo : "", written, password, encodeURIComponent(password)]
    .filter((secret) => secret !== "")
    .toSorted((a, b) => b.length - a.length);
  return (text) => secrets.reduce((clean, secret) => clean.replaceAll(secret, "***"), text);
}

function invalid(why: string): FleetError {
  return new FleetError("FLEET_STORE_URL_INVALID", `the store address cannot be understood: ${why}`);
}
