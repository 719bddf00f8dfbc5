import { expect } from "vitest";
import type { Settlement } from "../../protocol/task.ts";
import type { QueueSettings } from "../queue-store.ts";
import { HandClock, openThree, range, type Site, siteCase, type StoreHarness } from "./harness.ts";
import { completed, crashed, declaredQueue, ended, failed, LEASE_MS, Queue, task } from "./queue-driver.ts";

const TASKS = 400;
const KEYS = range(0, 6).map((i) => `k${i}`);
const STEPS = 3000;
const TAKERS = 50;

export function queueRace(harness: StoreHarness): void {
  for (const [what, settings] of [
    ["a concurrency", { concurrency: 7, keyConcurrency: 0 }],
    ["a limit per key", { concurrency: 0, keyConcurrency: 2 }],
    ["both limits", { concurrency: 9, keyConcurrency: 3 }],
  ] as const)
    siteCase(
      harness,
      `${TAKERS} takers at once never exceed ${what}`,
      (site) => race(site, settings),
      60_000,
    );
}

interface Claim {
  id: string;
  token: string;
  key: string | null;
  until: number;
}

/**
 * Takers on three connections claim and settle at random, let go, and are late. What is held is counted from the answers: a claim
 * counts from its answer until its settlement is sent or its lease is over, which is never longer than the store counts it. So an
 * excess that is seen is one.
 */
async function race(
  site: Site,
  limits: Pick<QueueSettings, "concurrency" | "keyConcurrency">,
): Promise<void> {
  const clock = new HandClock();
  const stores = await openThree(site, clock.options);
  const first = await declaredQueue(stores[0], { ...limits, crashLimit: 1000 });
  await first.submit(
    ...range(0, TASKS).map((i) => task(`t${i}`, { key: KEYS[i % KEYS.length] ?? "", maxAttempts: 1000 })),
  );
  const held = new Map<string, Claim>();
  const seen = { most: 0, mostOfKey: 0, claims: 0, late: 0, wrong: [] as string[] };
  let left = STEPS;

  function look(): void {
    const now = [...held.values()].filter(({ until }) => until > clock.ms);
    seen.most = Math.max(seen.most, now.length);
    const ofKeys = KEYS.map((one) => now.filter(({ key }) => key === one).length);
    seen.mostOfKey = Math.max(seen.mostOfKey, ...ofKeys);
  }

  async function taker(who: number): Promise<void> {
    const q = new Queue(stores[who % 3] as (typeof stores)[0]);
    const holder = `h${who}`;
    const random = randomOf(who + 1);
    let mine: Claim[] = [];
    while (left-- > 0) {
      if (random() < 0.01) clock.advance(LEASE_MS / 2);
      const letGo = random() < 0.1;
      const n = letGo || random() < 0.4 ? 0 : Math.ceil(random() * mine.length);
      const going = mine.splice(0, n);
      for (const { token } of [...going, ...(letGo ? mine : [])]) held.delete(token);
      if (letGo) {
        const gone = mine.map(({ id }) => id);
        mine = [];
        await q.lose([holder], random() < 0.5 ? gone : []);
      }
      const turn = await q.turn(
        holder,
        1 + Math.floor(random() * 3),
        going.map((claim) => endOf(claim, random())),
      );
      for (const [i, { id, until }] of going.entries()) {
        if (turn.settled[i] === "settled") continue;
        if (until > clock.ms) seen.wrong.push(id);
        else seen.late += 1;
      }
      for (const { id, token, key } of turn.tasks) {
        const claim = { id, token, key, until: turn.now + LEASE_MS };
        held.set(token, claim);
        mine.push(claim);
      }
      seen.claims += turn.tasks.length;
      look();
    }
  }

  await Promise.all(range(0, TAKERS).map((who) => taker(who)));
  const { concurrency, keyConcurrency } = limits;
  const most = Math.min(concurrency || Infinity, KEYS.length * (keyConcurrency || Infinity));
  expect(seen.wrong).toEqual([]);
  // The limits were reached and never passed. That all keys are at theirs at one moment is chance.
  expect(seen.most).toBeLessThanOrEqual(most);
  if (concurrency > 0) expect(seen.most).toBe(concurrency);
  if (keyConcurrency > 0) expect(seen.mostOfKey).toBe(keyConcurrency);
  expect(seen.claims).toBeGreaterThan(STEPS / 20);
  const { counts, totals } = await first.stats();
  expect(totals.crashed).toBeGreaterThan(0);
  expect(counts.active).toBeLessThanOrEqual(most);
  expect(Object.values(counts).reduce((sum, n) => sum + n, 0)).toBe(TASKS);
}

function endOf(claim: { id: string; token: string }, random: number): Settlement {
  if (random < 0.1) return completed(claim);
  if (random < 0.4) return failed(claim);
  if (random < 0.5) return crashed(claim);
  return ended(claim, random < 0.75 ? "interrupted" : "returned");
}

/** Numbers from 0 to 1, the same ones each time (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed * 2_654_435_761;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
