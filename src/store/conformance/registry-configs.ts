import { expect } from "vitest";
import { CONFIG_HISTORY } from "../../protocol/config.ts";
import type { DesiredAutomation } from "../../protocol/spec.ts";
import type { Registry } from "../store.ts";
import { HandClock, range, siteCase, type StoreHarness } from "./harness.ts";
import { desired } from "./workers.ts";

const put = (
  registry: Registry,
  generation: number,
  changes: Partial<DesiredAutomation> = {},
  { name = "x", by = "jo", note = null as string | null } = {},
) =>
  registry.putDesired({
    name,
    desired: desired(generation, changes),
    expected: generation - 1,
    record: { by, note },
  });

export function registryConfigs(harness: StoreHarness): void {
  siteCase(harness, "changes of config come back as they were made, newest first", async ({ open }) => {
    const clock = new HandClock();
    const [a, b] = await Promise.all([open(clock.options), open(clock.options)]);
    expect(await b.registry.configHistory({ name: "x", limit: 5 })).toEqual([]);
    const odd = { list: [], none: null, n: 1_781_234_567_890_123, f: 0.1, t: "ü|\u0000\ud800", key: "env:K" };
    const overrides = [{ labels: { region: "eu" }, config: { a: null } }];
    const canary = {
      size: { share: 0.2 },
      config: { b: 2 },
      since: clock.ms,
      generation: 2,
      by: "api ü",
    };
    expect(await put(a.registry, 1, { config: odd }, { by: "deploy" })).toBe("stored");
    clock.advance(10);
    expect(await put(a.registry, 2, { config: [], overrides, canary }, { by: "api ü", note: "a|b" })).toBe(
      "stored",
    );
    const first = { generation: 1, config: odd, overrides: [], canary: null, by: "deploy", note: null };
    const second = { generation: 2, config: [], overrides, canary, by: "api ü", note: "a|b" };
    expect(await b.registry.configHistory({ name: "x", limit: 5 })).toEqual([
      { ...second, at: clock.ms },
      { ...first, at: clock.ms - 10 },
    ]);
    expect(await b.registry.configHistory({ name: "x", limit: 1 })).toMatchObject([{ generation: 2 }]);
    expect(await b.registry.configHistory({ name: "x", limit: 5, before: 2 })).toMatchObject([
      { generation: 1 },
    ]);
    expect(await b.registry.configHistory({ name: "y", limit: 5 })).toEqual([]);
  });

  siteCase(harness, "only what is stored, and says so, enters the history of config", async ({ open }) => {
    const { registry } = await open();
    expect(await put(registry, 1)).toBe("stored");
    expect(await put(registry, 1, { config: "other" })).toBe("conflict");
    expect(await put(registry, 5)).toBe("conflict");
    // A scale, say: no change of config.
    const scaled = desired(2, { slots: 9 });
    expect(await registry.putDesired({ name: "x", desired: scaled, expected: 1 })).toBe("stored");
    expect(await put(registry, 3, {}, { by: "second" })).toBe("stored");
    expect(await put(registry, 1, {}, { name: "y" })).toBe("stored");
    const found = await registry.configHistory({ name: "x", limit: 100 });
    expect(found.map(({ generation, by }) => [generation, by])).toEqual([
      [3, "second"],
      [1, "jo"],
    ]);
    // Desired state bears nothing of the record.
    expect((await registry.view()).desired["x"]).toEqual(desired(3));
  });

  siteCase(harness, "the newest changes of config are kept, of each automation", async ({ open }) => {
    const { registry } = await open();
    expect(await put(registry, 1, {}, { name: "y" })).toBe("stored");
    for (const generation of range(1, CONFIG_HISTORY + 4)) await put(registry, generation);
    const found = await registry.configHistory({ name: "x", limit: 1000 });
    expect(found.map(({ generation }) => generation)).toEqual(range(4, CONFIG_HISTORY + 4).toReversed());
    expect(await registry.configHistory({ name: "y", limit: 1000 })).toHaveLength(1);
  });

  siteCase(harness, "a generation that comes a second time takes the first one's place", async ({ open }) => {
    // As after a loss of data: what workers knew last is put back on top of what is there.
    const { registry } = await open();
    const config = (n: number) => ({ config: { n } });
    const again = (generation: number, expected: number, n: number) =>
      registry.putDesired({
        name: "x",
        desired: desired(generation, config(n)),
        expected,
        record: { by: "w", note: null },
      });
    expect(await again(7, 0, 1)).toBe("stored");
    expect(await again(3, 7, 2)).toBe("stored");
    expect(await again(7, 3, 3)).toBe("stored");
    const found = await registry.configHistory({ name: "x", limit: 10 });
    expect(found.map(({ generation, config: is }) => [generation, is])).toEqual([
      [7, { n: 3 }],
      [3, { n: 2 }],
    ]);
  });

  siteCase(harness, "a wipe takes the history of config along", async ({ open }) => {
    const { registry, wipe } = await open().then((store) => ({
      registry: store.registry,
      wipe: () => store.wipe(),
    }));
    expect(await put(registry, 1)).toBe("stored");
    await wipe();
    expect(await registry.configHistory({ name: "x", limit: 10 })).toEqual([]);
  });
}
