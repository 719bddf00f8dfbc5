// `fleet lock`, `fleet counter` and `fleet limit` on both stores.
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { fleetOn } from "../src/automation/fleet.ts";
import { SILENT } from "../src/internal/log.ts";
import { until } from "../src/store/conformance/harness.ts";
import { makeProject, runFleet } from "./support/cli.ts";
import { openPlace, placesFor } from "./support/places.ts";

// Each test starts several processes: where two cores are shared, that takes its time.
vi.setConfig({ testTimeout: 90_000 });

describe.each(placesFor("Redis"))("on $name", ({ at }) => {
  async function setUp() {
    const cwd = makeProject();
    const place = at(cwd);
    const store = await openPlace(place);
    const fleet = fleetOn(store, { log: SILENT, source: "script" });
    onTestFinished(() => fleet.close());
    const command = (...args: string[]) => runFleet([...args, ...place.flags], { cwd });
    const json = async (...args: string[]) => {
      const { code, stdout, stderr } = await command(...args, "--json");
      expect([code, stderr]).toEqual([0, ""]);
      return JSON.parse(stdout) as unknown;
    };
    return { store, fleet, command, json };
  }

  test("lock ls shows who holds a lock and who waits", async () => {
    const { store, fleet, command, json } = await setUp();
    expect(await command("lock", "ls")).toEqual({ code: 0, stdout: "No lock is held.\n", stderr: "" });
    const lease = await fleet.lock("refresh", { key: "site a", holdSeconds: 3600 });
    const waiting = fleet.lock("refresh", { key: "site a", waitSeconds: 60 });
    await until(
      "one waits",
      async () => (await store.state.locks.show({ name: "refresh" }))[0]?.waiting.length === 1,
    );
    const { code, stdout } = await command("lock", "ls");
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^LOCK +KEY +HELD BY +FOR +ENDS IN +WAITING +NEXT\nrefresh +site a +script +\d+ \w+ +59 m \d+ s +1 +script\n$/,
    );
    expect(await json("lock", "ls", "refresh")).toMatchObject([
      { name: "refresh", key: "site a", held_by: "script", token: lease?.token, waiting: [{ by: "script" }] },
    ]);
    expect(await json("lock", "ls", "other")).toEqual([]);
    expect((await command("lock", "ls", "No")).code).toBe(2);
    await lease?.release();
    await (await waiting)?.release();
  });

  test("counter get, add, set and ls", async () => {
    const { fleet, command, json } = await setUp();
    expect((await command("counter", "ls")).stdout).toBe("There are no counters yet.\n");
    expect(await command("counter", "get", "pages")).toEqual({ code: 0, stdout: "0\n", stderr: "" });
    expect((await command("counter", "add", "pages")).stdout).toBe("1\n");
    expect((await command("counter", "add", "pages", "41")).stdout).toBe("42\n");
    expect((await command("counter", "add", "pages", "-2")).stderr).toBe("");
    expect(await fleet.counter("pages").get()).toBe(40);
    expect(await json("counter", "set", "pages", "7", "--key", "a b")).toEqual({
      name: "pages",
      key: "a b",
      value: 7,
    });
    expect(await fleet.counter("pages", { key: "a b" }).get()).toBe(7);
    expect((await command("counter", "ls")).stdout).toBe(
      "COUNTER  KEY  VALUE\npages    -       40\npages    a b      7\n",
    );
    expect(await json("counter", "ls", "pages", "-n", "1")).toEqual([{ name: "pages", key: "", value: 40 }]);
    const wrong = await command("counter", "set", "pages", "much");
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toMatch(/"much" is no whole number/);
  });

  test("limit ls shows what has been taken", async () => {
    const { fleet, command, json } = await setUp();
    expect((await command("limit", "ls")).stdout).toBe("No rate limit is in use.\n");
    await fleet.rateLimit("api", { limit: 10, perSeconds: 36_000, burst: 3 }).take({ cost: 2 });
    const { stdout } = await command("limit", "ls");
    expect(stdout).toMatch(
      /^LIMIT +KEY +WINDOWS +AT ONCE +ALL FREE IN +QUEUES\napi +- +10 per 36000 s +1\/3 +1 h 59 m +-\n$/,
    );
    expect(await json("limit", "ls", "api")).toMatchObject([
      { name: "api", key: "", windows: [{ limit: 10, per_seconds: 36_000, burst: 3, available: 1 }] },
    ]);
  });
});
