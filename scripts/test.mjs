// `npm test`: builds, finds a redis-server (or installs one), runs the tests, and prints the sum as its last line. `--soak` runs
// the long tests of test/soak/ instead. Further arguments go to vitest: `npm test -- src/store -t "a name"`.
import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ensureRedisServer } from "./redis-server.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
/** Every process of this run inherits this variable; that is how one that is left over is found. */
const RUN_MARK = "TEST_RUN_ID";
const run = randomUUID();
/** How long what the tests started may take to end after them. */
const GRACE_MS = 5000;

process.exitCode = await main(process.argv.slice(2));

async function main(given) {
  const soak = given.includes("--soak");
  const args = given.filter((arg) => arg !== "--soak");
  if (!build() || !redis()) return 1;

  const folder = mkdtempSync(join(tmpdir(), "fleet-tests-"));
  try {
    const report = join(folder, "report.json");
    const code = await vitest([
      ...(soak ? ["--config", "vitest.soak.config.ts"] : []),
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${report}`,
      ...args,
    ]);
    const left = await leftOver();
    const sum = readSum(report);
    for (const { pid, command } of left)
      console.error(`left running by the tests, ended now: ${pid} ${command}`);
    if (sum.passed + sum.failed === 0) console.error("No test ran.");
    console.log(`Tests: ${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`);
    const fine = code === 0 && sum.failed === 0 && sum.passed > 0 && left.length === 0;
    return fine ? 0 : code || 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function build() {
  const { status } = spawnSync(process.execPath, [join(root, "scripts", "build.mjs"), "--if-needed"], {
    stdio: "inherit",
  });
  return status === 0;
}

/** Says itself what to do where there is none. */
function redis() {
  try {
    process.env.FLEET_REDIS_SERVER = ensureRedisServer();
    return true;
  } catch (error) {
    console.error(error.message);
    return false;
  }
}

/** Exit code of the test runner. */
function vitest(args) {
  const entry = join(root, "node_modules", "vitest", "vitest.mjs");
  const child = spawn(process.execPath, [entry, "run", ...args], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, [RUN_MARK]: run },
  });
  // Ctrl-C in a terminal reaches the child as well, and a second one would cut its cleaning up short.
  const pass = (signal) => void (signal === "SIGINT" && process.stdin.isTTY ? undefined : child.kill(signal));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, pass);
  return new Promise((done) => {
    child.once("error", (error) => {
      console.error(error.message);
      done(1);
    });
    child.once("exit", (code) => done(code ?? 1));
  });
}

function readSum(report) {
  try {
    const json = JSON.parse(readFileSync(report, "utf8"));
    return {
      passed: json.numPassedTests,
      failed: json.numFailedTests,
      skipped: json.numPendingTests + json.numTodoTests,
    };
  } catch {
    return { passed: 0, failed: 0, skipped: 0 };
  }
}

/** Ends the processes that outlived the tests, and names them. */
async function leftOver() {
  for (const until = Date.now() + GRACE_MS; Date.now() < until && ofThisRun().length > 0;) await delay(200);
  const found = ofThisRun();
  for (const { pid } of found) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended by itself meanwhile.
    }
  }
  return found;
}

/** Linux shows the environment of processes in /proc; elsewhere nothing is looked for. */
function ofThisRun() {
  if (process.platform !== "linux") return [];
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, "latin1").includes(`${RUN_MARK}=${run}`)) return [];
      const command = readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ").trim();
      return command === "" ? [] : [{ pid: Number(pid), command }];
    } catch {
      return [];
    }
  });
}
