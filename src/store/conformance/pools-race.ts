import { expect } from "vitest";
import type { ClaimedItem } from "../../protocol/pool.ts";
import type { HolderChange } from "../pool-store.ts";
import { HandClock, openThree, range, siteCase, type StoreHarness } from "./harness.ts";
import { declaredPool, HOLD_MS, isConserved, items, newRequest, Pool } from "./pool-driver.ts";
import { randomOf } from "./pool-random.ts";

const TAKERS = 30;
const STEPS = 1500;
const ITEMS = 20;

export function poolRace(harness: StoreHarness): void {
  /**
   * What is held is counted from the answers: a claim counts from its answer until its end is asked for or its time is over, which is
   * never longer than the store counts it. So two holders that are seen are two.
   */
  siteCase(
    harness,
    `never two holders: ${TAKERS} that come, go, pause, are late and get lost`,
    async (site) => {
      const clock = new HandClock();
      const stores = await openThree(site, clock.options);
      const first = await declaredPool(stores[0], { strategy: "lru" });
      await first.put(
        ...items(
          range(0, ITEMS).map((i) => `i${i}`),
          { tags: { t: ["1"] } },
        ),
      );
      const held = new Map<string, ClaimedItem>();
      const seen = { claims: 0, late: 0, lost: 0, tokens: new Set<string>(), wrong: [] as unknown[] };
      let left = STEPS;

      function got(claims: readonly ClaimedItem[]): void {
        for (const claim of claims) {
          if (seen.tokens.has(claim.token)) seen.wrong.push(["token twice", claim]);
          seen.tokens.add(claim.token);
          // An answer can come when its time is over, after that to the next holder.
          if (claim.until <= clock.ms) continue;
          const other = held.get(claim.id);
          if (other !== undefined && other.until > clock.ms) seen.wrong.push(["two holders", other, claim]);
          held.set(claim.id, claim);
        }
        seen.claims += claims.length;
      }

      async function end(pool: Pool, claim: ClaimedItem, change: HolderChange): Promise<void> {
        const isMine = held.get(claim.id)?.token === claim.token;
        const isOver = claim.until <= clock.ms;
        if (isMine) held.delete(claim.id);
        const { outcome } = await pool.change(claim, change);
        if (outcome === "lease-lost" && !isOver && claim.until > clock.ms)
          seen.wrong.push(["not kept", claim]);
        if (outcome === "done" && isOver) seen.wrong.push(["late, yet done", claim]);
        if (outcome === "lease-lost") seen.late += 1;
      }

      async function taker(who: number): Promise<void> {
        const pool = new Pool(stores[who % 3] ?? stores[0]);
        const random = randomOf(who + 1);
        let mine: ClaimedItem[] = [];
        for (let life = 0; left-- > 0;) {
          const holder = `h${who}.${life}`;
          const request = newRequest();
          const waitFor = random() < 0.2 ? { waitFor: { patienceMs: HOLD_MS / 10 } } : {};
          const claims = await pool.claim(holder, { request, n: 1 + Math.floor(random() * 2), ...waitFor });
          got(claims);
          mine.push(...claims);
          if ("waitFor" in waitFor && claims.length === 0 && random() < 0.8) await pool.leave(request);
          if (random() < 0.04) clock.advance(HOLD_MS / 3);
          const chance = random();
          // A holder that pauses keeps what it has, and acts late.
          if (chance < 0.3) continue;
          if (chance < 0.4) {
            for (const { id, token } of mine) if (held.get(id)?.token === token) held.delete(id);
            mine = [];
            seen.lost += await pool.lose(holder);
            life += 1;
          }
          const change: HolderChange = chance < 0.6 ? { do: "cool", ms: 100 } : { do: "release" };
          for (const claim of mine.splice(0, 1 + Math.floor(random() * 3))) await end(pool, claim, change);
        }
      }

      await Promise.all(range(0, TAKERS).map((who) => taker(who)));
      expect(seen.wrong).toEqual([]);
      expect(seen.claims).toBeGreaterThan(STEPS / 10);
      expect(seen.late).toBeGreaterThan(20);
      expect(seen.lost).toBeGreaterThan(5);
      const stats = await first.stats();
      expect(isConserved(stats)).toBe(true);
      expect(stats.totals).toMatchObject({ put: ITEMS, claimed: seen.claims, retired: 0 });
      expect(stats.totals.leasesExpired).toBeGreaterThan(5);
    },
    60_000,
  );
}
