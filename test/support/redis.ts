// Throw-away Redis servers on free loopback ports. They keep nothing on disk and die with the process that started them.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@redis/client";
import { ensureRedisServer } from "../../scripts/redis-server.mjs";

export interface RedisServerOptions {
  /** Password that clients must give; default none. */
  password?: string;
  /** Allows DEBUG (SLEEP and the like); default false. */
  debug?: boolean;
  /** Further arguments of redis-server. */
  args?: readonly string[];
}

export interface RedisServer {
  /** Address with the password in it, where there is one. */
  readonly url: string;
  readonly port: number;
  /** Pid of the running server; of the last one after it was killed. */
  readonly pid: number;
  /** Sends a signal. Waits for the end with SIGKILL (the default) and SIGTERM; SIGSTOP and SIGCONT return at once. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same port, empty, after `kill`. */
  start(): Promise<void>;
  /** `kill()` and `start()`. */
  restart(): Promise<void>;
  /** Ends it for good and removes its folder. */
  stop(): Promise<void>;
}

export interface RedisCluster {
  /** `redis+cluster://127.0.0.1:<port of the first master>` */
  readonly url: string;
  readonly ports: readonly number[];
  readonly nodes: readonly RedisServer[];
  stop(): Promise<void>;
}

export interface SentinelOptions {
  /** How many sentinels; the majority decides. Default 3. */
  sentinels?: number;
  /** After so long without an answer the master counts as down. Default 1000. */
  downAfterMs?: number;
  /** A master that should be a replica (it was replaced, or comes back) is made one after so long. Default 8000, as usual. */
  convertMs?: number;
  /** Of the servers. */
  password?: string;
  /** Of the sentinels. */
  sentinelPassword?: string;
  /** Further arguments of both servers. */
  args?: readonly string[];
}

/** A master and a replica, and sentinels that promote the one when the other goes. */
export interface SentinelGroup {
  /** `redis+sentinel://…/main`, with all sentinels and passwords. */
  readonly url: string;
  readonly name: string;
  /** The first one begins as the master. */
  readonly servers: readonly [RedisServer, RedisServer];
  readonly sentinels: readonly RedisServer[];
  /** The port that a sentinel names and that says itself that it is a master; undefined while there is none. */
  masterPort(): Promise<number | undefined>;
  /** Waits until that is another one than `port`. */
  untilMasterIsNot(port: number, ms?: number): Promise<RedisServer>;
  /** Has the replica promoted, though the master is well. */
  failover(): Promise<void>;
  /** One command to a server. */
  ask<T>(server: RedisServer, ...args: string[]): Promise<T>;
  stop(): Promise<void>;
}

const HOST = "127.0.0.1";
const START_MS = 20_000;
const CALL_MS = 5000;

/** What is left to do when this process ends before its servers were stopped. */
const atExit = new Set<() => void>();
process.once("exit", () => {
  for (const clear of atExit) clear();
});

/** Starts one server and waits until it answers. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const binary = ensureRedisServer();
  const folder = mkdtempSync(join(tmpdir(), "fleet-redis-"));
  // Another process can take the free port before the server binds it: then try one more.
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const args = serverArgs(port, folder, options);
    try {
      return await runServer({ binary, port, folder, args, password: options.password });
    } catch (error) {
      if (attempt < 5) continue;
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }
}

/** Starts three masters that share all 16384 hash slots and waits until each of them sees the cluster as whole. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const buses = await Promise.all([freePort(), freePort(), freePort()]);
  const nodes = await Promise.all(
    buses.map((bus) =>
      startRedis({
        args: [
          ..."--cluster-enabled yes --cluster-config-file nodes.conf --cluster-node-timeout 2000".split(" "),
          ...`--cluster-port ${bus} --cluster-announce-ip ${HOST}`.split(" "),
        ],
      }),
    ),
  );
  const stop = async () => void (await Promise.all(nodes.map((node) => node.stop())));
  try {
    const seed = nodes[0] as RedisServer;
    for (const [i, node] of nodes.entries()) {
      const from = Math.floor((16384 * i) / nodes.length);
      const to = Math.floor((16384 * (i + 1)) / nodes.length) - 1;
      await call(node.port, ["CLUSTER", "ADDSLOTSRANGE", String(from), String(to)]);
      // Epochs of their own spare the nodes the time to settle who owns which slot.
      await call(node.port, ["CLUSTER", "SET-CONFIG-EPOCH", String(i + 1)]);
      if (node !== seed)
        await call(seed.port, ["CLUSTER", "MEET", HOST, String(node.port), String(buses[i])]);
    }
    await Promise.all(nodes.map((node) => untilWhole(node.port, nodes.length)));
    const ports = nodes.map((node) => node.port);
    return { url: `redis+cluster://${HOST}:${seed.port}`, ports, nodes, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts a master with a replica in step, and sentinels that know of both and of each other. */
export async function startSentinels(options: SentinelOptions = {}): Promise<SentinelGroup> {
  const { sentinels: count = 3, downAfterMs = 1000, convertMs = 8000, password, sentinelPassword } = options;
  const name = "main";
  const args = [
    // Without it the first sync of the replica waits five seconds for others to join.
    "--repl-diskless-sync-delay",
    "0",
    ...(password === undefined ? [] : ["--masterauth", password]),
    ...(options.args ?? []),
  ];
  const server = { args, ...(password === undefined ? {} : { password }) };
  const master = await startRedis(server);
  const replica = await startRedis({ ...server, args: [...args, "--replicaof", HOST, String(master.port)] });
  const servers = [master, replica] as const;
  const ask = <T>(one: { port: number }, ...command: string[]) => call<T>(one.port, command, password);
  const watch = <T>(one: { port: number }, ...command: string[]) =>
    call<T>(one.port, ["SENTINEL", ...command], sentinelPassword);
  const sentinels: RedisServer[] = [];
  const stop = async () => void (await Promise.all([...servers, ...sentinels].map((one) => one.stop())));
  try {
    await until("the replica follows", async () =>
      (await ask<string>(replica, "INFO", "replication")).includes("master_link_status:up"),
    );
    const config = [
      "bind " + HOST,
      `sentinel monitor ${name} ${HOST} ${master.port} ${Math.floor(count / 2) + 1}`,
      `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
      `sentinel failover-timeout ${name} 5000`,
      ...(password === undefined ? [] : [`sentinel auth-pass ${name} ${password}`]),
      ...(sentinelPassword === undefined
        ? []
        : [`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`]),
    ];
    for (let i = 0; i < count; i++) sentinels.push(await startSentinel(config, sentinelPassword));
    // They introduce themselves through the master, by default every two seconds.
    for (const one of sentinels) await watch(one, "DEBUG", "PUBLISH-PERIOD", "200");
    await until("the sentinels know each other", async () => {
      const known = await Promise.all(
        sentinels.map((one) => watch<Record<string, string>>(one, "MASTER", name)),
      );
      return known.every(
        (fields) => Number(fields["num-slaves"]) === 1 && Number(fields["num-other-sentinels"]) === count - 1,
      );
    });
    // They wait four such periods before they convert; each second they look.
    for (const one of sentinels)
      await watch(one, "DEBUG", "PUBLISH-PERIOD", String(convertMs / 4), "INFO-PERIOD", "1000");
  } catch (error) {
    await stop();
    throw error;
  }

  const masterBy = async (sentinel: RedisServer) => {
    const [, port] = await watch<[string, string]>(sentinel, "GET-MASTER-ADDR-BY-NAME", name);
    const [role] = await ask<[string]>({ port: Number(port) }, "ROLE");
    if (role !== "master") throw new Error(`${port} is a ${role}`);
    return Number(port);
  };
  // Some may be gone, or stand still.
  const masterPort = () => Promise.any(sentinels.map(masterBy)).catch(() => undefined);
  const user = password === undefined ? "" : `:${encodeURIComponent(password)}@`;
  const query =
    sentinelPassword === undefined ? "" : `?sentinel_password=${encodeURIComponent(sentinelPassword)}`;
  const addresses = sentinels.map(({ port }) => `${HOST}:${port}`).join(",");
  return {
    url: `redis+sentinel://${user}${addresses}/${name}${query}`,
    name,
    servers,
    sentinels,
    masterPort,
    untilMasterIsNot: async (port, ms = START_MS) => {
      let now: number | undefined;
      await until("another master", async () => (now = await masterPort()) !== undefined && now !== port, ms);
      return servers.find((one) => one.port === now) as RedisServer;
    },
    failover: async () => void (await watch(sentinels[0] as RedisServer, "FAILOVER", name)),
    ask,
    stop,
  };
}

async function startSentinel(config: readonly string[], password: string | undefined): Promise<RedisServer> {
  const binary = ensureRedisServer();
  const folder = mkdtempSync(join(tmpdir(), "fleet-sentinel-"));
  const port = await freePort();
  // It writes down there what it learns.
  const file = join(folder, "sentinel.conf");
  writeFileSync(file, [...config, `port ${port}`, `dir ${folder}`, ""].join("\n"));
  return runServer({ binary, port, folder, args: [file, "--sentinel"], password });
}

function serverArgs(port: number, folder: string, options: RedisServerOptions): string[] {
  const args = ["--port", String(port), "--bind", HOST, "--dir", folder, "--save", "", "--appendonly", "no"];
  if (options.password !== undefined) args.push("--requirepass", options.password);
  if (options.debug === true) args.push("--enable-debug-command", "yes");
  return [...args, ...(options.args ?? [])];
}

interface Launch {
  binary: string;
  port: number;
  folder: string;
  args: readonly string[];
  password?: string | undefined;
}

async function runServer(launch: Launch): Promise<RedisServer> {
  const { port, folder, password } = launch;
  let child = await startProcess(launch);
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  atExit.add(removeFolder);

  const server: RedisServer = {
    url:
      password === undefined
        ? `redis://${HOST}:${port}`
        : `redis://:${encodeURIComponent(password)}@${HOST}:${port}`,
    port,
    get pid() {
      return child.pid as number;
    },
    async kill(signal = "SIGKILL") {
      if (!isAlive(child)) return;
      const ended = once(child, "exit");
      child.kill(signal);
      if (signal === "SIGKILL" || signal === "SIGTERM") await ended;
    },
    async start() {
      if (!isAlive(child)) child = await startProcess(launch);
    },
    async restart() {
      await server.kill();
      await server.start();
    },
    async stop() {
      await server.kill();
      atExit.delete(removeFolder);
      removeFolder();
    },
  };
  return server;
}

function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

async function startProcess({ binary, port, args }: Launch): Promise<ChildProcess> {
  const child = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout?.on("data", (chunk) => (output = `${output}${String(chunk)}`.slice(-2000)));
  child.stderr?.on("data", (chunk) => (output = `${output}${String(chunk)}`.slice(-2000)));
  await once(child, "spawn");
  guard(child);
  const end = Date.now() + START_MS;
  while (!(await answers(port))) {
    if (!isAlive(child) || Date.now() > end) {
      child.kill("SIGKILL");
      throw new Error(`redis-server on port ${port} did not come up:\n${output}`);
    }
    await delay(10);
  }
  // One that was there before on this port answers too; then ours has failed to bind.
  if (!isAlive(child)) throw new Error(`redis-server could not take port ${port}:\n${output}`);
  child.unref();
  (child.stdout as unknown as { unref(): void }).unref();
  (child.stderr as unknown as { unref(): void }).unref();
  return child;
}

/**
 * Ties a server's life to this process, also when this one is killed without a chance to clean up: a small shell waits for
 * the end of its input, which closes with us, and then kills the server.
 */
function guard(child: ChildProcess): void {
  const watchdog = spawn("sh", ["-c", `read -r _; kill -9 ${child.pid}`], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  watchdog.stdin?.on("error", () => undefined);
  const kill = () => child.kill("SIGKILL");
  atExit.add(kill);
  child.once("exit", () => {
    atExit.delete(kill);
    watchdog.kill("SIGKILL");
  });
  watchdog.unref();
  (watchdog.stdin as unknown as { unref(): void }).unref();
}

/** A port that is free now on loopback. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, HOST);
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/** True when whatever listens there talks like a Redis that is ready. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, HOST, () => socket.write("PING\r\n"));
    const settle = (up: boolean) => {
      socket.destroy();
      resolve(up);
    };
    socket.setTimeout(1000, () => settle(false));
    socket.once("error", () => settle(false));
    socket.once("close", () => settle(false));
    socket.once("data", (chunk) => settle(/^(\+PONG|-NOAUTH)/.test(String(chunk))));
  });
}

/** One command on a connection of its own. */
async function call<T = string>(port: number, args: string[], password?: string): Promise<T> {
  const client = createClient({
    socket: { host: HOST, port, reconnectStrategy: false },
    ...(password === undefined ? {} : { password }),
  });
  client.on("error", () => undefined);
  const timer = setTimeout(() => client.destroy(), CALL_MS);
  try {
    await client.connect();
    return await client.sendCommand<T>(args);
  } finally {
    clearTimeout(timer);
    if (client.isOpen) client.destroy();
  }
}

async function untilWhole(port: number, size: number): Promise<void> {
  await until("the cluster is whole", async () => {
    const info = await call(port, ["CLUSTER", "INFO"]);
    return info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${size}`);
  });
}

async function until(what: string, holds: () => Promise<boolean>, ms = START_MS): Promise<void> {
  const end = Date.now() + ms;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await delay(20);
  }
}
