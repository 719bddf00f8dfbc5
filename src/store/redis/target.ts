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
  /** Set where sentinels are to be asked which server is the master. */
  sentinel?: SentinelAccess;
  /** One for a single server; the seeds of a cluster; the sentinels. */
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

export interface SentinelAccess {
  /** By which name the sentinels know the master. */
  master: string;
  /** Of the sentinels; those of the servers are not given to them. */
  username?: string;
  password?: string;
}

const SCHEMES = new Set(["redis", "rediss", "redis+cluster", "redis+sentinel", "rediss+sentinel"]);
const DEFAULT_PORT = 6379;
const DEFAULT_SENTINEL_PORT = 26_379;
const SENTINEL_FORM = "redis+sentinel://host:26379/master-name";
const PARAMETERS = ["db", "sentinel_username", "sentinel_password"] as const;
type Parameters = Partial<Record<(typeof PARAMETERS)[number], string>>;

/**
 * Reads `redis://`, `rediss://`, `redis+cluster://seed:port[,seed:port]` and `redis+sentinel://` (over TLS `rediss+sentinel://`)
 * `sentinel:port[,sentinel:port]/master-name[/database]`. No error of it shows the user information.
 */
export function parseTarget(url: string): Target {
  const scheme = /^([a-z+]+):\/\//.exec(url)?.[1] ?? "";
  if (!SCHEMES.has(scheme)) {
    throw invalid(
      "the scheme must be redis://, rediss://, redis+cluster://, redis+sentinel:// or rediss+sentinel://",
    );
  }
  const cluster = scheme === "redis+cluster";
  const sentinel = scheme.endsWith("+sentinel");
  const [rest, query] = splitQuery(url.slice(scheme.length + 3), sentinel);
  // A password may hold an unescaped "/" or ":", so the host begins behind the last "@".
  const at = rest.lastIndexOf("@");
  const userinfo = at < 0 ? "" : rest.slice(0, at);
  const [hosts = "", ...path] = rest.slice(at + 1).split("/");
  const master = sentinel ? parseMaster(path.shift()) : "";
  if (path.length > 1 || /[?#]/.test(hosts + path.join("")))
    throw invalid("there must be nothing behind the database number");
  const parameters = parseQuery(query);
  const addresses = hosts
    .split(",")
    .map((text) => parseAddress(text, sentinel ? DEFAULT_SENTINEL_PORT : DEFAULT_PORT));
  if (!cluster && !sentinel && addresses.length > 1)
    throw invalid("only redis+cluster:// and redis+sentinel:// take more than one address");
  const database = parseDatabase([path[0] ?? "", parameters.db ?? ""], cluster);
  const colon = userinfo.indexOf(":");
  const user = credentials(
    colon < 0 ? userinfo : userinfo.slice(0, colon),
    colon < 0 ? "" : userinfo.slice(colon + 1),
  );
  const sentinelUser = credentials(parameters.sentinel_username ?? "", parameters.sentinel_password ?? "");
  return {
    cluster,
    ...(sentinel ? { sentinel: { master, ...sentinelUser } } : {}),
    addresses,
    tls: scheme.startsWith("rediss"),
    ...user,
    database,
    shown: [
      `${scheme}://${hosts}`,
      ...(sentinel ? [master] : []),
      ...(database === 0 ? [] : [database]),
    ].join("/"),
    scrub: scrubber([
      userinfo.includes(":") ? userinfo : "",
      ...formsOf(userinfo.slice(colon + 1), colon < 0 ? undefined : user.password),
      ...formsOf(parameters.sentinel_password ?? "", sentinelUser.password),
    ]),
  };
}

/** Only the addresses of sentinels take parameters. A "?" can also stand in a password: then the "@" comes behind it. */
function splitQuery(rest: string, sentinel: boolean): [rest: string, query: string] {
  const known = rest.search(/\?(db|sentinel_username|sentinel_password)=/);
  const mark = known < 0 ? rest.indexOf("?", rest.lastIndexOf("@")) : known;
  if (!sentinel || mark < 0) return [rest, ""];
  return [rest.slice(0, mark), rest.slice(mark + 1)];
}

function parseQuery(query: string): Parameters {
  const found: Parameters = {};
  if (query === "") return found;
  if (/[@#]/.test(query)) throw invalid("a '@' or '#' in a parameter must be written as %40 or %23");
  for (const part of query.split("&")) {
    const equals = part.indexOf("=");
    const name = PARAMETERS.find((one) => one === part.slice(0, Math.max(0, equals)));
    if (name === undefined) throw invalid(`behind the "?" there can be ${PARAMETERS.join(", ")} only`);
    if (found[name] !== undefined) throw invalid(`${name} is given twice`);
    found[name] = part.slice(equals + 1);
  }
  return found;
}

function parseMaster(text = ""): string {
  const name = decode(text);
  if (name === "") throw invalid(`the name of the master is missing, as in ${SENTINEL_FORM}`);
  // What sentinels themselves accept in `sentinel monitor`.
  if (!/^[\w.-]+$/.test(name))
    throw invalid("the name of the master can hold letters, digits, '.', '-' and '_' only");
  return name;
}

function parseAddress(text: string, defaultPort: number): Address {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]*))(?::(\d{1,5}))?$/.exec(text);
  const port = match?.[3] === undefined ? defaultPort : Number(match[3]);
  if (match === null || port < 1 || port > 65_535) throw invalid("host and port cannot be read");
  return { host: match[1] ?? (match[2] || "127.0.0.1"), port };
}

/** The database, from the path or from `db`. */
function parseDatabase([path, parameter]: [string, string], cluster: boolean): number {
  if (path !== "" && parameter !== "") throw invalid("the database is given twice");
  const text = path || parameter;
  if (text === "") return 0;
  if (!/^\d{1,6}$/.test(text)) throw invalid("the database must be a number, as in redis://host:6379/1");
  if (cluster && Number(text) !== 0) throw invalid("a cluster has database 0 only");
  return Number(text);
}

function credentials(user: string, word: string): { username?: string; password?: string } {
  const [username, password] = [decode(user), decode(word)];
  return { ...(username === "" ? {} : { username }), ...(password === "" ? {} : { password }) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("a '%' in user or password must be written as %25");
  }
}

/** A password as it was written, as it is meant, and as it would be written. */
function formsOf(written: string, password: string | undefined): string[] {
  return password === undefined ? [] : [written, password, encodeURIComponent(password)];
}

function scrubber(texts: readonly string[]): (text: string) => string {
  const secrets = texts.filter((secret) => secret !== "").toSorted((a, b) => b.length - a.length);
  return (text) => secrets.reduce((clean, secret) => clean.replaceAll(secret, "***"), text);
}

function invalid(why: string): FleetError {
  return new FleetError("FLEET_STORE_URL_INVALID", `the store address cannot be understood: ${why}`);
}
