import { expect, it } from "vitest";
import { z } from "zod";
import { defineStream } from "../contracts/stream.ts";
import { SILENT, Throttle } from "../internal/log.ts";
import type { StreamStore } from "../store/store.ts";
import { IdlePoller } from "./idle-poller.ts";
import { StreamReader } from "./stream-reader.ts";
import { StreamWaiters } from "./stream-waiters.ts";

it("lets the process go on when a loop pops and pops after the end", async () => {
  const pops: number[] = [];
  const store = {
    pop: ({ n }: { n: number }) => {
      pops.push(n);
      return Promise.resolve([]);
    },
  };
  const watch = () => ({ ready: Promise.resolve(), close: () => Promise.resolve() });
  const waiters = new StreamWaiters(watch, new IdlePoller(1000));
  const reader = new StreamReader(store as unknown as StreamStore, defineStream("s", z.number()), {
    waiters,
    log: SILENT,
    quietly: new Throttle(1000),
  });
  const timer = { fired: false };
  setTimeout(() => (timer.fired = true), 1);
  for (let turn = 0; turn < 10_000 && !timer.fired; turn++) {
    expect(await reader.pop({ n: 1, waitMs: 5000, signal: AbortSignal.abort() })).toEqual([]);
  }
  expect(timer.fired).toBe(true);
  expect(pops).toEqual([]);
});

it("ends with its signal, also while nothing but unusable entries comes", async () => {
  const stop = new AbortController();
  let pops = 0;
  const store = {
    pop: () => {
      if (++pops === 50) stop.abort();
      return Promise.resolve(["no envelope"]);
    },
    quarantine: () => Promise.resolve(),
  };
  const watch = () => ({ ready: Promise.resolve(), close: () => Promise.resolve() });
  const waiters = new StreamWaiters(watch, new IdlePoller(1000));
  const reader = new StreamReader(store as unknown as StreamStore, defineStream("s", z.number()), {
    waiters,
    log: SILENT,
    quietly: new Throttle(1000),
  });
  expect(await reader.pop({ n: 1, waitMs: 60_000, signal: stop.signal })).toEqual([]);
  expect(pops).toBe(50);
});
