// Short: `npm run demo`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { makeProject } from "./support/cli.ts";
import { descendants, isAlive } from "./support/processes.ts";

const DEMO = fileURLToPath(new URL("../scripts/demo.mjs", import.meta.url));
const LEFT = fileURLToPath(new URL("../examples/url-monitor/.fleet", import.meta.url));

function demo(...args: string[]) {
  const child = spawn(process.execPath, [DEMO, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (output.stdout += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (output.stderr += chunk));
  const ended = once(child, "close").then(([code]) => code as number | null);
  return { pid: child.pid as number, output, ended, interrupt: () => child.kill("SIGINT") };
}

test("watches the URLs of a file, and Ctrl-C leaves no process and no file", async () => {
  const server = createServer((_, response) => response.end("hello")).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await vi.waitFor(() => expect(server.listening).toBe(true));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/real`;
  const file = join(makeProject(), "urls.txt");
  writeFileSync(file, `# mine\n${url} # up\n\n`);

  const wasThere = existsSync(LEFT);
  const { pid, output, ended, interrupt } = demo("--file", file, "--interval", "0.2");
  await vi.waitFor(() => expect(output.stdout.split(` ms  100.0 %  ${url}\n`).length).toBeGreaterThan(4), {
    timeout: 40_000,
  });
  const database = /--store sqlite:(\S+)/.exec(output.stderr)?.[1] ?? "";
  expect(existsSync(database)).toBe(true);
  const token = /token_file=(\S+)/.exec(output.stderr)?.[1] ?? "";
  expect(dirname(token)).toBe(dirname(database));
  expect(existsSync(token)).toBe(true);
  const pids = [pid, ...descendants(pid)];
  interrupt();
  expect(await ended).toBe(0);
  await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]), { timeout: 10_000 });
  expect(existsSync(dirname(database))).toBe(false);
  expect(existsSync(LEFT)).toBe(wasThere);
}, 90_000);

test("says what is wrong with its arguments", async () => {
  const { output, ended } = demo("example.org");
  expect(await ended).toBe(2);
  expect(output.stderr).toContain('"example.org" is no URL');
  const missing = demo("--file", "there/is/none.txt");
  expect(await missing.ended).toBe(2);
  expect(missing.output.stderr).toContain("there is no file");
});
