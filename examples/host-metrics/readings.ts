// What the machine tells about itself. Rates need two looks, so counters are kept from one reading to the next.
import { readFile, statfs } from "node:fs/promises";
import { cpus, freemem, hostname, totalmem } from "node:os";
import type { Reading } from "./contracts.ts";

type Part<Name extends "cpu" | "memory" | "disk" | "network"> = Promise<NonNullable<Reading[Name]>>;

export class Readings {
  readonly #path: string;
  #cpu = cpuTimes();
  #network: { received: number; sent: number; atMs: number } | undefined;

  /** `path` names the disk that is looked at. */
  constructor(path: string) {
    this.#path = path;
  }

  /** The first look at counters: the next reading has rates. */
  async start(): Promise<void> {
    this.#cpu = cpuTimes();
    this.#network = await networkCounters().catch(() => undefined);
  }

  async read(): Promise<Reading> {
    const missing: string[] = [];
    const orNull = async <T>(name: string, part: Promise<T>): Promise<T | null> => {
      try {
        return await part;
      } catch (error) {
        missing.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
        return null;
      }
    };
    const cpu = await orNull("cpu", this.#cpuLoad());
    const memory = await orNull("memory", memoryUse());
    const disk = await orNull("disk", diskUse(this.#path));
    const network = await orNull("network", this.#networkRate());
    return { host: hostname(), at: Date.now(), cpu, memory, disk, network, missing };
  }

  async #cpuLoad(): Part<"cpu"> {
    const before = this.#cpu;
    const now = cpuTimes();
    this.#cpu = now;
    const total = now.total - before.total;
    if (total <= 0) throw new Error("this system does not tell its processors' times");
    return { usedPercent: percent(total - (now.idle - before.idle), total), cores: now.cores };
  }

  async #networkRate(): Part<"network"> {
    const before = this.#network;
    const now = await networkCounters();
    this.#network = now;
    if (before === undefined) throw new Error("a rate needs a second look");
    const seconds = Math.max(0.001, (now.atMs - before.atMs) / 1000);
    // A counter that went back belongs to an interface that went away: no rate then, rather than a negative one.
    const rate = (from: number, to: number) => Math.max(0, Math.round((to - from) / seconds));
    return {
      receivedBytesPerSecond: rate(before.received, now.received),
      sentBytesPerSecond: rate(before.sent, now.sent),
    };
  }
}

function cpuTimes(): { idle: number; total: number; cores: number } {
  const cores = cpus();
  const times = cores.map((core) => core.times);
  return {
    idle: sum(times.map((time) => time.idle)),
    total: sum(times.flatMap((time) => Object.values(time))),
    cores: cores.length,
  };
}

/** Linux counts caches that it would give back at once as available; elsewhere only what is free counts. */
async function memoryUse(): Part<"memory"> {
  const totalBytes = totalmem();
  const info = await readFile("/proc/meminfo", "utf8").catch(() => "");
  const available = /^MemAvailable:\s+(\d+) kB$/m.exec(info)?.[1];
  const freeBytes = available === undefined ? freemem() : Number(available) * 1024;
  return { usedPercent: percent(totalBytes - freeBytes, totalBytes), totalBytes };
}

/** As `df` counts: what only root may fill is neither used nor free. */
async function diskUse(path: string): Part<"disk"> {
  const { blocks, bfree, bavail, bsize } = await statfs(path);
  const used = blocks - bfree;
  if (blocks === 0) throw new Error(`${path} has no size`);
  return { usedPercent: percent(used, used + bavail), totalBytes: blocks * bsize, path };
}

/** Bytes since the machine started. Only Linux tells them without a further program. */
async function networkCounters(): Promise<{ received: number; sent: number; atMs: number }> {
  const text = await readFile("/proc/net/dev", "utf8").catch(() => {
    throw new Error(`${process.platform} has no /proc/net/dev`);
  });
  // Two lines of heading, then `name: received 7 others sent …`.
  const rows = text
    .split("\n")
    .slice(2)
    .map((line) => line.split(":"))
    .filter(([name]) => name?.trim() !== "lo")
    .map(([, numbers]) => (numbers ?? "").trim().split(/\s+/).map(Number));
  return {
    received: sum(rows.map((row) => row[0] ?? 0)),
    sent: sum(rows.map((row) => row[8] ?? 0)),
    atMs: performance.now(),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** With one decimal, within 0 and 100. */
function percent(part: number, whole: number): number {
  return Math.min(100, Math.max(0, Math.round((1000 * part) / whole) / 10));
}
