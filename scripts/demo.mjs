// `npm run demo`: the URL monitor of examples/ on real input, with nothing installed but this package.
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { quickBuild } from "./quick-build.mjs";

const USAGE = `Watches URLs: whether they answer, and how fast. Ctrl-C ends it.

  npm run demo                                    endpoints on this machine
  npm run demo -- https://example.org …           these URLs
  npm run demo -- --file urls.txt                 those in a file, one per line
  npm run demo -- --store redis://localhost:6379  the same on Redis

  --interval <s>      seconds between two looks at one URL, at least 0.1; default 1
  --slots <n>         slots of url-pinger that share the URLs; default 2
  --store <url>       default: a SQLite file in a temporary folder
  --namespace <name>  keeps fleets on one store apart`;

const root = fileURLToPath(new URL("..", import.meta.url));
const OPTIONS = {
  file: { type: "string" },
  interval: { type: "string" },
  slots: { type: "string" },
  store: { type: "string" },
  namespace: { type: "string" },
  help: { type: "boolean", short: "h" },
};

const { values: options, positionals: urls } = readArguments();
if (options.help) {
  console.log(USAGE);
  process.exit(0);
}
await quickBuild();
process.env.URL_MONITOR_PORT ??= String(await freePort());
if (urls.length > 0) process.env.URL_MONITOR_URLS = urls.join(" ");
if (options.file !== undefined) process.env.URL_MONITOR_FILE = fileOf(options.file);
if (options.interval !== undefined) process.env.URL_MONITOR_INTERVAL_SECONDS = numberOf("interval", 0.1);
if (options.slots !== undefined) process.env.URL_MONITOR_SLOTS = numberOf("slots", 1);

const project = join(root, "examples", "url-monitor");
const config = join(project, "fleet.config.ts");
const own = temporaryFolder();
// The master's token and whatever else it keeps is of this run alone.
process.env.FLEET_DATA_DIR ||= own;
const store = options.store ?? process.env.FLEET_STORE ?? `sqlite:${join(own, "fleet.db")}`;
const namespace = options.namespace === undefined ? [] : ["--namespace", options.namespace];
const command = ["up", "--config", config, "--store", store, ...namespace];
console.error(`fleet ${command.map(shown).join(" ")}\n`);

// The command runs in this very process: a signal reaches it directly, and its exit code is ours.
process.argv.splice(1, Infinity, join(root, "bin", "fleet.js"), ...command);
await import("../bin/fleet.js");

function readArguments() {
  try {
    const parsed = parseArgs({ options: OPTIONS, allowPositionals: true });
    const wrong = parsed.positionals.find((url) => !/^https?:\/\/[^/]/i.test(url) || !URL.canParse(url));
    if (wrong !== undefined) refuse(`"${wrong}" is no URL; give it whole, for example https://example.org`);
    return parsed;
  } catch (error) {
    return refuse(error.message);
  }
}

function numberOf(name, least) {
  const value = Number(options[name]);
  return value >= least && value < Infinity
    ? String(value)
    : refuse(`--${name} must be a number from ${least}`);
}

function fileOf(path) {
  // npm runs scripts in the package's folder and says in INIT_CWD where it was called.
  const file = resolve(process.env.INIT_CWD ?? process.cwd(), path);
  return existsSync(file) ? file : refuse(`there is no file ${file}`);
}

function refuse(message) {
  console.error(`${message}\n\n${USAGE}`);
  process.exit(2);
}

/** Of this run alone, and removed at its end, with what was built beside the config. */
function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), "fleet-demo-"));
  const wasThere = existsSync(join(project, ".fleet"));
  process.on("exit", () => {
    rmSync(folder, { recursive: true, force: true });
    if (!wasThere && !isBuildUsed()) rmSync(join(project, ".fleet"), { recursive: true, force: true });
  });
  // As long as the command does not listen for signals itself, they would end this process without "exit".
  for (const [signal, number] of [
    ["SIGINT", 2],
    ["SIGTERM", 15],
    ["SIGHUP", 1],
  ]) {
    process.on(signal, () => process.listenerCount(signal) === 1 && process.exit(128 + number));
  }
  return folder;
}

/** Somebody else may have begun to run this example meanwhile: each process that uses a build has a file in it, named by its id. */
function isBuildUsed() {
  const builds = join(project, ".fleet", "build");
  if (!existsSync(builds)) return false;
  return readdirSync(builds, { recursive: true, encoding: "utf8" }).some((name) => {
    const pid = Number(/in-use\..*\.(\d+)$/.exec(name)?.[1] ?? process.pid);
    return pid !== process.pid && isAlive(pid);
  });
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function freePort() {
  return new Promise((done, failed) => {
    const server = createServer();
    server.once("error", failed);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

/** Passwords in store addresses are nobody's business. */
function shown(word) {
  return word.replace(/\/\/[^@/]*@/, "//***@");
}
