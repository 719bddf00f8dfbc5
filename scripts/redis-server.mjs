// Finds the redis-server (or valkey-server) that tests start their throw-away instances from, or installs one.
// Run as a command it prints the path: `node scripts/redis-server.mjs`.
import { spawnSync } from "node:child_process";
import { accessSync, chmodSync, constants, existsSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const NAMES = ["redis-server", "valkey-server"];
const USUAL_PLACES = [
  "/usr/bin",
  "/usr/local/bin",
  "/usr/sbin",
  "/usr/local/sbin",
  "/opt/homebrew/bin",
  "/opt/local/bin",
  "/snap/bin",
];
const OLDEST = 7;

/** Path of a server of version 7.0 or later, or undefined. `$FLEET_REDIS_SERVER` is looked at before all else. */
export function findRedisServer() {
  return candidates().find((path) => (serverVersion(path) ?? 0) >= OLDEST);
}

/** As `findRedisServer`, but installs one by apt-get or brew where there is none. Throws an error that says what to do. */
export function ensureRedisServer(say = (line) => process.stderr.write(`${line}\n`)) {
  const found = findRedisServer();
  if (found !== undefined) return found;
  const chosen = process.env.FLEET_REDIS_SERVER;
  if (chosen) throw new Error(`FLEET_REDIS_SERVER=${chosen} is no Redis or Valkey server >= ${OLDEST}.0.`);
  const tried = installByApt(say) ?? installByBrew(say) ?? "neither apt-get (as root) nor brew is at hand";
  const installed = findRedisServer();
  if (installed !== undefined) return installed;
  throw new Error(whatToDo(tried));
}

function candidates() {
  const chosen = process.env.FLEET_REDIS_SERVER;
  if (chosen) return [chosen];
  const folders = [...(process.env.PATH ?? "").split(delimiter).filter(Boolean), ...USUAL_PLACES];
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).filter(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Major version that `path --version` reports ("… v=7.0.15 …"), or undefined. */
function serverVersion(path) {
  const { status, stdout } = spawnSync(path, ["--version"], { encoding: "utf8", timeout: 10_000 });
  const major = status === 0 ? /\bv=(\d+)\./.exec(stdout)?.[1] : undefined;
  return major === undefined ? undefined : Number(major);
}

function run(command, args, env = {}) {
  const result = spawnSync(command, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 300_000,
    env: { ...process.env, ...env },
  });
  return { ok: result.status === 0, text: `${result.stdout ?? ""}${result.stderr ?? ""}`.trim() };
}

/** Undefined where apt-get cannot be used; else a line on how it went. */
function installByApt(say) {
  if (!run("apt-get", ["--version"]).ok) return undefined;
  const root = process.getuid?.() === 0;
  if (!root && !run("sudo", ["-n", "true"]).ok) return "apt-get needs root, and sudo asks for a password";
  const settings = ["DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"];
  const asRoot = (args) =>
    root ? run("env", [...settings, ...args]) : run("sudo", ["-n", "env", ...settings, ...args]);
  const install = () => asRoot(["apt-get", "install", "-y", "--no-install-recommends", "redis-server"]);

  say("No redis-server found: installing one with apt-get (it is not left running).");
  const allowStart = forbidServiceStart(root, asRoot);
  try {
    let result = install();
    if (!result.ok) {
      asRoot(["apt-get", "update"]);
      result = install();
    }
    return result.ok
      ? "apt-get installed a server older than 7.0"
      : `apt-get failed: ${lastLine(result.text)}`;
  } finally {
    allowStart();
  }
}

/**
 * Debian starts a service once it is installed, unless /usr/sbin/policy-rc.d exits with 101. One that is there already is
 * left alone. Answers how to undo it.
 */
function forbidServiceStart(root, asRoot) {
  const policy = "/usr/sbin/policy-rc.d";
  if (existsSync(policy)) return () => undefined;
  if (root) {
    writeFileSync(policy, "#!/bin/sh\nexit 101\n");
    chmodSync(policy, 0o755);
    return () => rmSync(policy, { force: true });
  }
  asRoot(["sh", "-c", `printf '#!/bin/sh\\nexit 101\\n' > ${policy} && chmod 755 ${policy}`]);
  return () => asRoot(["rm", "-f", policy]);
}

function installByBrew(say) {
  if (!run("brew", ["--version"]).ok) return undefined;
  say("No redis-server found: installing one with brew (it is not started as a service).");
  const result = run("brew", ["install", "redis"]);
  return result.ok ? "brew installed no usable server" : `brew failed: ${lastLine(result.text)}`;
}

function lastLine(text) {
  return text.split("\n").at(-1) ?? "";
}

function whatToDo(tried) {
  return [
    `The tests need a redis-server or valkey-server, version ${OLDEST}.0 or later, and none was found (${tried}).`,
    "Do one of these, then run the command again:",
    "  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install -y redis-server",
    "  macOS:           brew install redis",
    "  Fedora:          sudo dnf install -y valkey",
    "  elsewhere:       put a redis-server on the PATH, or its path into FLEET_REDIS_SERVER",
    "It need not run: the tests start their own on free ports.",
  ].join("\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    process.stdout.write(`${ensureRedisServer()}\n`);
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
