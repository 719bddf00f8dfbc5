// Short settings; part of `npm test`. Four processes write to one SQLite file at once (field case 35, on streams).
import { join } from "node:path";
import { expect, it } from "vitest";
import { range } from "../src/store/conformance/harness.ts";
import { declared, payloads, unaccounted } from "../src/store/conformance/producer.ts";
import { openStore } from "../src/store/open.ts";
import { prepareChildren } from "./support/children.ts";
import type { ContenderInput, ContenderMessage } from "./support/children/contender.ts";
import { temporaryFolder } from "./support/stores.ts";

const SECONDS = 4;

it("35: four processes on one file: no BUSY, nothing twice, nothing lost", { timeout: 90_000 }, async () => {
  const folder = temporaryFolder();
  const children = await prepareChildren();
  const url = `sqlite:${join(folder.path, "fleet.db")}`;
  const store = await openStore(url, { namespace: "n" });
  try {
    await declared(store, "t");
    // The fifth only shows what the machine does to a busy process.
    const contenders = range(0, 5).map((who) => {
      const control = who === 4;
      const input: ContenderInput = { url, namespace: "n", stream: "t", seconds: SECONDS, who, control };
      return children.start<ContenderMessage>("contender", input);
    });
    await Promise.all(contenders.map((child) => child.next((message) => "opened" in message)));
    for (const child of contenders) child.send("go");
    const everyone = await Promise.all(
      contenders.map((child) =>
        child.next((message): message is Exclude<ContenderMessage, { opened: true }> => "errors" in message),
      ),
    );
    const [reports, machine] = [everyone.slice(0, 4), everyone[4]?.lagP99Ms ?? 0];
    expect(reports.flatMap(({ errors }) => errors)).toEqual([]);
    // Each of them got its turns: they did contend.
    expect(Math.min(...reports.map(({ calls }) => calls))).toBeGreaterThan(10);
    const rest = payloads(await store.streams.pop({ stream: "t", n: 1_000_000 })) as number[];
    const all = [...reports.flatMap(({ got }) => got), ...rest].toSorted((a, b) => a - b);
    expect(all).toEqual(
      reports.flatMap(({ pushed }, who) => range(who * 10_000_000, who * 10_000_000 + pushed)),
    );
    expect(await unaccounted(store, "t")).toBe(0);
    expect(Math.max(...reports.map(({ lagP99Ms }) => lagP99Ms))).toBeLessThan(50 + 2 * machine);
  } finally {
    await store.close();
    await children.dispose();
    folder.remove();
  }
});
