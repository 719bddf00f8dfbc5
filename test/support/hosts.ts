// Hosts on one machine: network namespaces, each with one link to a switch. Linux, and only where it is permitted to make them.
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { ensureRedisServer } from "../../scripts/redis-server.mjs";
import { temporaryFolder } from "./stores.ts";

export interface Host {
  /** Its address, as the other hosts and this process see it. */
  readonly address: string;
  /** What a command is to be run by, so that it runs on this host. */
  readonly within: readonly string[];
  /** Pulls its cable: what it sends goes nowhere, and nobody is told. */
  cut(): void;
  mend(): void;
  /** Whether a connection to there can be made from here, within so many seconds. */
  reaches(address: string, port: number, seconds: number): boolean;
  /** Ports of other hosts to which processes of this one have connections. */
  peers(): number[];
}

/** Why there can be no hosts here; undefined where there can. */
export function whyNoHosts(): string | undefined {
  const name = `fleet-try-${process.pid}`;
  const made = spawnSync("ip", ["netns", "add", name], { encoding: "utf8" });
  if (made.error !== undefined) return `there is no command "ip" (${made.error.message})`;
  if (made.status !== 0) return `network namespaces are not permitted: ${made.stderr.trim()}`;
  ip("netns", "del", name);
  return undefined;
}

/** So many hosts on one switch, which this process is on, too. They go at the end of the test, after what was started on them. */
export function makeHosts(count: number): Host[] {
  const id = randomBytes(3).toString("hex");
  const net = freeNet();
  const bridge = `fl${id}`;
  const undo: string[][] = [];
  onTestFinished(() => {
    for (const args of undo.toReversed()) spawnSync("ip", args);
  });
  const add = (remove: string[], ...make: string[]) => {
    ip(...make);
    undo.push(remove);
  };
  add(["link", "del", bridge], "link", "add", bridge, "type", "bridge");
  ip("addr", "add", `${net}.254/24`, "dev", bridge);
  ip("link", "set", bridge, "up");
  return Array.from({ length: count }, (_, index) => {
    const [space, cable, address] = [`fl${id}-${index}`, `fl${id}p${index}`, `${net}.${index + 1}`];
    const within = ["ip", "netns", "exec", space];
    add(["netns", "del", space], "netns", "add", space);
    add(["link", "del", cable], "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space);
    ip("link", "set", cable, "master", bridge, "up");
    ip("-n", space, "link", "set", "lo", "up");
    ip("-n", space, "addr", "add", `${address}/24`, "dev", "eth0");
    ip("-n", space, "link", "set", "eth0", "up");
    const run = (...args: string[]) => spawnSync("ip", [...within.slice(1), ...args], { encoding: "utf8" });
    return {
      address,
      within,
      cut: () => ip("link", "set", cable, "down"),
      mend: () => ip("link", "set", cable, "up"),
      reaches: (to, port, seconds) =>
        run("timeout", String(seconds), "bash", "-c", `</dev/tcp/${to}/${port}`).status === 0,
      peers: () =>
        run("ss", "-Htn", "state", "established")
          .stdout.split("\n")
          .flatMap((line) => /\s(?!127\.)[\d.]+:(\d+)\s*$/.exec(line)?.[1] ?? [])
          .map(Number),
    };
  });
}

/** A Redis on that host, at its address. */
export async function redisOn(host: Host, port = 6379): Promise<string> {
  const folder = temporaryFolder();
  const [, ...args] = [...host.within, ensureRedisServer()];
  const child = spawn(
    "ip",
    [
      ...args,
      "--port",
      String(port),
      "--protected-mode",
      "no",
      "--dir",
      folder.path,
      "--save",
      "",
      "--appendonly",
      "no",
    ],
    { stdio: "ignore" },
  );
  onTestFinished(async () => {
    const gone = once(child, "exit");
    if (child.exitCode === null && child.kill("SIGKILL")) await gone;
    folder.remove();
  });
  for (let tries = 0; !(await accepts(host.address, port)); tries++) {
    if (tries > 200) throw new Error(`no Redis at ${host.address}:${port}`);
    await delay(50);
  }
  return `redis://${host.address}:${port}`;
}

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host, () => settle(true));
    const settle = (up: boolean) => {
      socket.destroy();
      resolve(up);
    };
    socket.setTimeout(1000, () => settle(false));
    socket.once("error", () => settle(false));
  });
}

/** The first three numbers of addresses that nobody has here. */
function freeNet(): string {
  const used = ip("-o", "-4", "addr", "show");
  for (;;) {
    const [a = 0, b = 0] = randomBytes(2);
    const net = `10.${a}.${b}`;
    if (!used.includes(` ${net}.`)) return net;
  }
}

function ip(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync("ip", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
  return stdout;
}
