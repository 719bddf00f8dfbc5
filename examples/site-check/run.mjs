// Checks a site, or a folder of HTML files: starts the automations of this project, shows how far they are, ends them, prints the report.
// Run again after a kill, it goes on where it was.
import { spawn } from "node:child_process";
import {
  createWriteStream,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { once as eventOnce } from "node:events";
import { createServer } from "node:net";
import { basename, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { isFleetError, openFleet, openStore } from "fleet-framework";

const USAGE = `node examples/site-check/run.mjs <url or folder> [options]

  --out <folder>      findings, report and state; default site-check-report/<name>
  --slots <n>         pages read at once, 1 to 100; default 8
  --depth <n>         clicks away from the start; default 100
  --no-external       do not ask other sites whether their pages are there
  --pause <s>         seconds between two pages of one slot; default 0 for a folder, 0.5 for a site
  --store <url>       default: a SQLite file in the out folder
  --namespace <name>  keeps checks on one store apart
  --fresh             begin anew, also where a check is unfinished

Ctrl-C stops it; the same command goes on. Check only sites of your own, or ones that you may check.`;

const OPTIONS = {
  out: { type: "string" },
  slots: { type: "string", default: "8" },
  depth: { type: "string", default: "100" },
  "no-external": { type: "boolean", default: false },
  pause: { type: "string" },
  store: { type: "string" },
  namespace: { type: "string", default: "" },
  fresh: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
};
/** Loaded by the worker: it drains when this process is gone, however that went. */
const TIE = `data:text/javascript,${encodeURIComponent(
  'process.once("disconnect", () => process.kill(process.pid, "SIGTERM")); process.channel.unref();',
)}`;
const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..", "..");
const QUEUES = ["crawler", "link-checker", "report"];

const { options, target } = readArguments();
const isSite = /^https?:\/\//i.test(target);
const folder = isSite ? undefined : folderOf(target);
const name = (isSite ? new URL(target).host : basename(folder)).toLowerCase().replace(/[^a-z0-9.-]+/g, "-");
const out = resolve(options.out ?? join("site-check-report", name));
mkdirSync(out, { recursive: true });
const state = await begin();
const store = options.store ?? `sqlite:${join(out, "fleet.db")}`;
const ended = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => ended.abort());

const fleet = await openFleet({ store, namespace: options.namespace, source: "site-check" });
const crawler = fleet.queue(await contract("CRAWLER"));
const { once } = await load("once.ts");
await crawler.submit({ url: state.start, depth: 0 }, once(state.id, state.start));
const worker = startWorker();
const finished = await watch();
worker.kill("SIGTERM");
if (worker.exitCode === null && worker.signalCode === null) await eventOnce(worker, "exit");
await fleet.close();
if (finished) {
  writeState({ ...state, finished: true });
  console.log(readFileSync(join(out, "report.txt"), "utf8"));
  console.log(`report: ${join(out, "report.html")} · ${join(out, "report.json")}`);
  const { broken } = JSON.parse(readFileSync(join(out, "report.json"), "utf8"));
  process.exitCode = broken.length > 0 ? 1 : 0;
} else {
  console.error("stopped; the same command goes on");
  process.exitCode = 130;
}

/** The state of a check that is unfinished, or of a new one. */
async function begin() {
  const file = join(out, "check.json");
  const kept = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
  if (kept !== undefined && !kept.finished && !options.fresh && kept.target === target) {
    console.error(`going on with the check of ${target}`);
    return kept;
  }
  for (const old of ["findings.jsonl", "report.json", "report.html", "report.txt"])
    rmSync(join(out, old), { force: true });
  const start = isSite ? new URL(target).href : `http://127.0.0.1:${await freePort()}/`;
  const fresh = { id: `check-${Date.now()}`, target, start, finished: false };
  writeState(fresh);
  return fresh;
}

function writeState(value) {
  writeFileSync(join(out, "check.json"), `${JSON.stringify(value, null, 2)}\n`);
}

function startWorker() {
  const env = {
    ...process.env,
    SITE_CHECK_ID: state.id,
    SITE_CHECK_START: state.start,
    SITE_CHECK_OUT: out,
    SITE_CHECK_SLOTS: options.slots,
    SITE_CHECK_DEPTH: options.depth,
    SITE_CHECK_EXTERNAL: options["no-external"] ? "no" : "yes",
    SITE_CHECK_PAUSE: options.pause ?? (isSite ? "0.5" : "0"),
    FLEET_DATA_DIR: join(out, ".fleet"),
    ...(folder === undefined ? {} : { SITE_CHECK_FOLDER: folder }),
  };
  const config = join(here, "fleet.config.ts");
  const where = ["--store", store, ...(options.namespace === "" ? [] : ["--namespace", options.namespace])];
  const child = spawn(
    process.execPath,
    ["--import", TIE, join(root, "bin", "fleet.js"), "up", "--config", config, ...where],
    {
      env,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      // Ctrl-C is for this process, which then ends the other in order.
      detached: true,
    },
  );
  const log = createWriteStream(join(out, "fleet.log"), { flags: "a" });
  child.stdout.pipe(log);
  child.stderr.pipe(log);
  child.once("exit", (code) => {
    if (!ended.signal.aborted && code !== 0)
      console.error(`the worker has ended (${code}); see ${join(out, "fleet.log")}`);
    ended.abort();
  });
  return child;
}

/** Shows how far it is until nothing is left to do. False when it was stopped before. */
async function watch() {
  const port = await openStore(store, { namespace: options.namespace });
  const started = { at: Date.now(), done: undefined };
  const tty = process.stderr.isTTY;
  let said = 0;
  try {
    while (!ended.signal.aborted) {
      const looks = [];
      // In this order: what a crawler hands on is in its queue before the crawler's task is finished.
      for (const queue of QUEUES) looks.push(await look(port, queue));
      const open = looks.reduce((sum, { open: left }) => sum + left, 0);
      const done = looks[0].done + looks[1].done;
      started.done ??= done;
      const every = tty ? 200 : 2000;
      if (Date.now() - said >= every || open === 0) {
        said = Date.now();
        show(tty, looks, done - started.done, Date.now() - started.at);
      }
      if (open === 0) return true;
      await new Promise((wake) => setTimeout(wake, 200));
    }
    return false;
  } finally {
    if (tty) process.stderr.write("\n");
    await port.close();
  }
}

async function look(port, queue) {
  try {
    const stats = await port.queues.stats({ queue });
    if (stats === undefined) return { done: 0, open: 0, failed: 0 };
    const { counts, totals } = stats;
    return {
      done: totals.completed,
      open: counts.waiting + counts.scheduled + counts.active,
      failed: counts.failed,
    };
  } catch (error) {
    // A store that is away comes back; until then nobody can say that all is done.
    if (isFleetError(error) && error.retryable) return { done: 0, open: 1, failed: 0 };
    throw error;
  }
}

function show(tty, [pages, links], done, ms) {
  const open = pages.open + links.open;
  const perSecond = (done * 1000) / Math.max(1, ms);
  // What is known to be left; a site that is still being discovered has more.
  const eta = done > 0 && open > 0 ? `, about ${duration(open / perSecond)} to go` : "";
  const failed = pages.failed + links.failed;
  const text = `${pages.done} pages read, ${pages.open} to read; ${links.done} links asked for, ${links.open} to ask; ${perSecond.toFixed(0)}/s${eta}${failed > 0 ? `; ${failed} given up` : ""}`;
  process.stderr.write(tty ? `\r\x1b[2K${text}` : `${text}\n`);
}

function duration(seconds) {
  return seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`;
}

/** The contracts are TypeScript, and this is a plain script: built in memory, as the command does it for the automations. */
async function load(file) {
  const { build } = await import("esbuild");
  const to = join(out, ".fleet", `${basename(file, ".ts")}-${process.pid}.mjs`);
  await build({
    entryPoints: [join(here, file)],
    outfile: to,
    bundle: true,
    packages: "external",
    format: "esm",
    platform: "node",
  });
  // Beside the sources, so that packages are found; gone again at once.
  const beside = join(here, `.${basename(to)}`);
  writeFileSync(beside, readFileSync(to));
  try {
    return await import(pathToFileURL(beside).href);
  } finally {
    rmSync(beside, { force: true });
    rmSync(to, { force: true });
  }
}

async function contract(named) {
  return (await load("contracts.ts"))[named];
}

function folderOf(path) {
  const found = resolve(process.env.INIT_CWD ?? process.cwd(), path);
  if (existsSync(found) && statSync(found).isDirectory()) return found;
  return refuse(`"${path}" is neither a URL (https://…) nor a folder`);
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

function readArguments() {
  try {
    const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true });
    if (values.help) {
      console.log(USAGE);
      process.exit(0);
    }
    if (positionals.length !== 1) return refuse("which site or folder?");
    for (const [option, least, most] of [
      ["slots", 1, 100],
      ["depth", 0, 10_000],
    ]) {
      const value = Number(values[option]);
      if (!Number.isInteger(value) || value < least || value > most)
        return refuse(`--${option} must be a whole number from ${least} to ${most}`);
    }
    if (values.pause !== undefined && !(Number(values.pause) >= 0))
      return refuse("--pause must be a number of seconds");
    return { options: values, target: positionals[0] };
  } catch (error) {
    return refuse(error.message);
  }
}

function refuse(message) {
  console.error(`${message}\n\n${USAGE}`);
  process.exit(2);
}
