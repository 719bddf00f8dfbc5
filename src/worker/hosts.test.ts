import { expect, test } from "vitest";
import type { FromHost } from "../protocol/host.ts";
import type { ProgramAutomation } from "../protocol/program.ts";
import { Hosts } from "./hosts.ts";
import type { Host, Runtime } from "./runtime.ts";

function started() {
  let now = 1000;
  let say: (message: FromHost) => void = () => undefined;
  const host = { holder: "h", pid: 1, tell: () => undefined } as unknown as Host;
  const runtime = { start: (_: unknown, hear: typeof say) => ((say = hear), host) } as unknown as Runtime;
  const nothing = () => undefined;
  const hosts = new Hosts(runtime, { blockedMs: 30_000, startMs: 60_000 }, nothing, nothing);
  const tasks = { queue: "q", options: {} };
  hosts.start("k", { manifest: { name: "job", tasks } } as unknown as ProgramAutomation, () => now);
  say({ type: "ready" });
  const run = (slotId: number) =>
    hosts.tell("k", { type: "run", slotId, token: "1", slotCount: 2, config: null, configKey: "" });
  return {
    hosts,
    run,
    say: (message: FromHost) => say(message),
    takes: () => hosts.takers(now).map((taker) => taker.takes),
    pass: (ms: number) => (now += ms),
  };
}

test("tasks may be handed to a host as long as a slot of it is not to stop", () => {
  const { hosts, run, say, takes } = started();
  expect(takes()).toEqual([false]);
  run(0);
  run(1);
  expect(takes()).toEqual([true]);
  hosts.tell("k", { type: "stop", slotId: 0, reason: "drain" });
  expect(takes()).toEqual([true]);
  say({ type: "ended", slotId: 1, outcome: "failed", error: "x" });
  expect(takes()).toEqual([false]);
  run(1);
  expect(takes()).toEqual([true]);
});

test("tasks are not handed to a host whose event loop stands still", () => {
  const { run, say, takes, pass } = started();
  run(0);
  pass(1500);
  expect(takes()).toEqual([true]);
  pass(1);
  expect(takes()).toEqual([false]);
  say({ type: "activity", slots: [], vitals: { memoryMb: 1, cpuPercent: 1, loopLagMs: 1 } });
  expect(takes()).toEqual([true]);
});

test("failed starts are remembered for as long as somebody wants that host", () => {
  let exit: (code: number) => void = () => undefined;
  const exited = (then: (end: { code: number; signal: null }) => void) =>
    (exit = (code) => then({ code, signal: null }));
  const runtime = {
    start: (_: unknown, __: unknown, then: Parameters<typeof exited>[0]) => {
      exited(then);
      return { holder: "h", pid: 1, tell: () => undefined };
    },
  } as unknown as Runtime;
  const nothing = () => undefined;
  const hosts = new Hosts(runtime, { blockedMs: 30_000, startMs: 60_000 }, nothing, nothing);
  for (const key of ["job@1", "job@2"]) {
    hosts.start(key, { manifest: { name: "job", tasks: null } } as unknown as ProgramAutomation, () => 1000);
    exit(1);
  }
  expect([...hosts.retryAt().keys()]).toEqual(["job@1", "job@2"]);
  hosts.forgetFailures((key) => key === "job@2");
  expect([...hosts.retryAt().keys()]).toEqual(["job@2"]);
});
