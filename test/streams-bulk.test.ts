// Short (`npm test`): the big numbers of the streams' promises, with consumers in processes of their own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { openFleet } from "../src/automation/fleet.ts";
import { defineStream } from "../src/contracts/stream.ts";
import { makeProject, runFleet } from "./support/cli.ts";
import { PLACES } from "./support/places.ts";

const Numbered = z.object({ n: z.number() });
const CONSUMER = fileURLToPath(new URL("support/children/consumer.mjs", import.meta.url));

async function consume(url: string, namespace: string, name: string) {
  const child = spawn(process.execPath, [CONSUMER, url, namespace, name], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  return text.trim().split("\n").slice(1);
}

describe.each(PLACES)("on $name", ({ at }) => {
  test("two processes pop 100 000 entries at once: none twice, none missing", async () => {
    const count = 100_000;
    const { url, namespace } = at(makeProject());
    await using fleet = await openFleet({ store: url, namespace });
    const contract = defineStream("bulk", Numbered, { maxLength: count });
    const stream = fleet.stream(contract);
    // More than one burst, so that consumers and producer meet in the middle too.
    const consumers = [consume(url, namespace, "bulk"), consume(url, namespace, "bulk")];
    for (let from = 0; from < count; from += 5000) {
      await Promise.all(Array.from({ length: 5000 }, (_, i) => stream.push({ n: from + i })));
    }
    const got = await Promise.all(consumers);
    // The fault that this looks for needs two at work: each got a real share.
    for (const lines of got) expect(lines.length).toBeGreaterThan(1000);
    const all = got.flat().map((line) => Number(line.split(" ")[0]));
    expect(all).toHaveLength(count);
    expect(new Set(all).size).toBe(count);
    expect(new Set(got.flat().map((line) => line.split(" ")[1])).size).toBe(count);
    // One consumer alone sees its entries in the order of the pushes.
    for (const lines of got) {
      const numbers = lines.map((line) => Number(line.split(" ")[0]));
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    }
  }, 120_000);

  test("60 000 pushes with nobody reading: the newest 50 000 stay, 10 000 are counted as trimmed", async () => {
    const cwd = makeProject();
    const { url, namespace, flags } = at(cwd);
    await using fleet = await openFleet({ store: url, namespace });
    const stream = fleet.stream(defineStream("unread", Numbered));
    for (let from = 0; from < 60_000; from += 5000) {
      await Promise.all(Array.from({ length: 5000 }, (_, i) => stream.push({ n: from + i })));
    }
    expect(await stream.length()).toBe(50_000);
    expect(await stream.peek({ n: 1 })).toEqual([{ n: 10_000 }]);
    const { stdout } = await runFleet(["stream", "ls", "--json", ...flags], { cwd });
    expect(JSON.parse(stdout)).toEqual([
      expect.objectContaining({ length: 50_000, pushed: 60_000, trimmed: 10_000, popped: 0, expired: 0 }),
    ]);
  }, 120_000);
});
