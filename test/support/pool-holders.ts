// Processes that claim, use and give back items of one pool while they are frozen, killed and started again, each by a wrong clock of its own.
// What they wrote down is judged afterwards: was there ever a second holder?
import { closeSync, openSync, readFileSync, readSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { fleetOn } from "../../src/automation/fleet.ts";
import { definePool } from "../../src/contracts/pool.ts";
import { SILENT } from "../../src/internal/log.ts";
import type { PoolStats } from "../../src/store/pool-store.ts";
import type { Child, Children } from "./children.ts";
import type { HolderLine, PoolHolderInput } from "./children/pool-holder.ts";
import { seeded } from "./nemesis.ts";
import { openPlace, type Place } from "./places.ts";
import { temporaryFolder } from "./stores.ts";

const KEYS = definePool("keys", { payload: z.string(), tags: z.object({ for: z.array(z.string()) }) });
const HOUR_MS = 3_600_000;
const HOLD_MS = 400;
const PROCESSES = 4;
const TAKERS = 5;
const ITEMS = 12;

export interface HoldersPlan {
  seed: number;
  /** It goes on until there were so many claims, and so many kills. */
  claims: number;
  kills: number;
  /** Mean time between two faults, in ms. */
  everyMs: number;
}

export interface HoldersReport {
  claims: number;
  kills: number;
  freezes: number;
  /** Calls that were asked for when the claim's time was over: all, and those of holders that had not meant to be late. */
  late: number;
  lateUnmeant: number;
  /** Late calls that only the store could refuse. */
  lateAtStore: number;
  /** Calls without an answer that tells anything (a store that did not answer in time). */
  unanswered: number;
  /** Smallest and greatest error of a wall clock, ms. */
  offsets: [number, number];
  /** What must not be; empty. */
  wrong: string[];
  stats: PoolStats;
}

export async function poolHolders(
  children: Children,
  place: Place,
  plan: HoldersPlan,
): Promise<HoldersReport> {
  const folder = temporaryFolder();
  const { url, namespace } = place.at(folder.path);
  const ledger = join(folder.path, "ledger.jsonl");
  writeFileSync(ledger, "");
  const fleet = fleetOn(await openPlace({ url, namespace }), { log: SILENT });
  const pool = fleet.pool(KEYS);
  await pool.putMany(
    Array.from({ length: ITEMS }, (_, i) => ({ id: `i${i}`, payload: `key ${i}`, tags: { for: ["any"] } })),
  );
  const random = seeded(plan.seed);
  let lives = 0;
  const start = (who: number): Child<never> => {
    const life = `p${who}.${lives++}`;
    // The first is right, the second far ahead, the third far behind; whatever chance wants for the others.
    const offsetMs = Math.round(([0, 1, -1][who] ?? random() * 2 - 1) * HOUR_MS);
    const input: PoolHolderInput = {
      url,
      namespace,
      ledger,
      life,
      takers: TAKERS,
      holdMs: HOLD_MS,
      storeOffsetMs: url.startsWith("sqlite:") ? -offsetMs : 0,
      chances: Array.from({ length: 997 }, random),
    };
    return children.start("pool-holder", input, { CLOCK_OFFSET_MS: String(offsetMs) });
  };
  const running = Array.from({ length: PROCESSES }, (_, who) => start(who));
  const claims = claimsIn(ledger);
  let kills = 0;
  let freezes = 0;
  const thawing = new Map<number, Promise<void>>();
  try {
    while (claims.count() < 20) await delay(20);
    while (claims.count() < plan.claims || kills < plan.kills) {
      await delay((0.5 + random()) * plan.everyMs);
      const who = Math.floor(random() * PROCESSES);
      const child = running[who] as Child<never>;
      // As work goes on: on a busy machine a process takes seconds to be there again. Also one that is frozen.
      if (claims.count() > ((kills + 1) * plan.claims) / (plan.kills + 1)) {
        child.kill("SIGKILL");
        await child.ended;
        kills += 1;
        running[who] = start(who);
      } else if (!thawing.has(who)) {
        const ms = HOLD_MS * (0.2 + 1.5 * random());
        child.kill("SIGSTOP");
        freezes += 1;
        thawing.set(
          who,
          delay(ms).then(() => {
            child.kill("SIGCONT");
            thawing.delete(who);
          }),
        );
      }
    }
  } finally {
    await Promise.all(thawing.values());
    for (const child of running) child.kill("SIGKILL");
    await Promise.all(running.map(({ ended }) => ended));
  }
  // One claim looks at what the dead have left behind.
  await delay(HOLD_MS * 2);
  await pool.claim({ holdSeconds: 60 });
  const stats = (await pool.stats()) as PoolStats;
  await fleet.close();
  const lines = readFileSync(ledger, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as HolderLine);
  folder.remove();
  return { kills, freezes, stats, ...judge(lines) };
}

/** What is wrong with a run, in words; also that its faults did not bite as often as they should. */
export function problemsOf(
  report: HoldersReport,
  atLeast: Pick<HoldersReport, "claims" | "kills" | "freezes" | "late" | "lateUnmeant">,
): string[] {
  const { offsets, stats } = report;
  const { counts, totals } = stats;
  const few = Object.entries(atLeast).filter(([what, least]) => report[what as keyof typeof atLeast] < least);
  const must: [boolean, string][] = [
    ...few.map(([what, least]): [boolean, string] => [false, `fewer ${what} than ${least}`]),
    [report.lateAtStore > 0, "no late call reached the store"],
    [report.unanswered <= report.claims / 100, `${report.unanswered} calls were not answered`],
    [
      offsets[0] < -HOUR_MS / 2 && offsets[1] > HOUR_MS / 2,
      `clocks were wrong by ${offsets.join(" to ")} ms only`,
    ],
    // Nothing was lost on the way, and no use is missing in the store's books.
    [counts.free === ITEMS - 1 && counts.held === 1, `at the end: ${JSON.stringify(counts)}`],
    [totals.claimed > report.claims, `the store counts ${totals.claimed} claims of ${report.claims}`],
    [totals.claimed === totals.released + totals.leasesExpired + 1, `in sum: ${JSON.stringify(totals)}`],
    [totals.leasesExpired >= atLeast.kills, `only ${totals.leasesExpired} leases expired`],
  ];
  return [...report.wrong, ...must.flatMap(([holds, words]) => (holds ? [] : [words]))];
}

/** Counts claims in a ledger that grows. */
function claimsIn(path: string): { count(): number } {
  const buffer = Buffer.alloc(1 << 20);
  let position = 0;
  let rest = "";
  let count = 0;
  return {
    count: () => {
      const file = openSync(path, "r");
      for (let n; (n = readSync(file, buffer, 0, buffer.length, position)) > 0; position += n) {
        const lines = (rest + buffer.toString("utf8", 0, n)).split("\n");
        rest = lines.pop() ?? "";
        count += lines.filter((line) => line.includes('"what":"claim"')).length;
      }
      closeSync(file);
      return count;
    },
  };
}

type Of<What> = Extract<HolderLine, { what: What }>;

/** A claim as its holder knew it. */
interface Use {
  life: string;
  granted: number;
  /** As the store had said; after an extension it lies between these. */
  until: number;
  latest: number;
  /** When its end was first asked for, where that was not refused: from then on its holder makes no use of it. */
  ended: number;
}

/**
 * Times are the store's own, or the machine's clock where something was asked for, which cannot be later than the store's step; both are one
 * clock here. So the use of an item was over at `min(until, ended)` at the latest, and the next one must have been granted then or later.
 */
export function judge(lines: readonly HolderLine[]): Omit<HoldersReport, "kills" | "freezes" | "stats"> {
  const wrong: string[] = [];
  const items = new Map<string, Map<string, Use>>();
  const those = <What extends HolderLine["what"]>(what: What) =>
    lines.filter((line): line is Of<What> => line.what === what);
  for (const { life, item, token, granted, until } of those("claim")) {
    const uses = items.get(item) ?? new Map<string, Use>();
    items.set(item, uses);
    if (uses.has(token)) wrong.push(`${item}: token ${token} twice`);
    uses.set(token, { life, granted, until, latest: until, ended: Number.POSITIVE_INFINITY });
  }
  const useOf = ({ item, token }: { item: string; token: string }) => items.get(item)?.get(token) as Use;
  for (const line of those("extended")) {
    const use = useOf(line);
    use.until = Math.max(use.until, line.until);
    use.latest = Math.max(use.latest, line.latest);
  }
  const refused = new Set<string>();
  for (const { token, asked, code } of those("call"))
    if (code === "FLEET_LEASE_LOST") refused.add(`${token} ${asked}`);
  for (const line of those("asking")) {
    const use = useOf(line);
    if (!refused.has(`${line.token} ${line.asked}`)) use.ended = Math.min(use.ended, line.asked);
  }
  const counts = { late: 0, lateUnmeant: 0, lateAtStore: 0, unanswered: 0 };
  for (const line of those("call")) {
    const use = useOf(line);
    const about = `${line.life}, ${line.item}: ${line.change} by the ${line.by} at ${line.asked}`;
    const isLost = line.code === "FLEET_LEASE_LOST";
    if (line.code !== "done" && !isLost) counts.unanswered += 1;
    if (line.asked >= use.latest) {
      counts.late += 1;
      if (!line.meant) counts.lateUnmeant += 1;
      if (line.by === "store") counts.lateAtStore += 1;
      if (line.code === "done") wrong.push(`${about}: done, though its time was over at ${use.latest}`);
    } else if (isLost && line.age < HOLD_MS * 0.8) {
      wrong.push(`${about}: lost after ${line.age} ms`);
    }
  }
  for (const [item, uses] of items) {
    const inOrder = [...uses].toSorted(([a], [b]) => (BigInt(a) < BigInt(b) ? -1 : 1));
    for (const [at, [token, use]] of inOrder.entries()) {
      const [, before] = inOrder[at - 1] ?? [];
      if (before === undefined) continue;
      if (use.granted < before.granted) wrong.push(`${item}: token ${token} is no later than the one before`);
      const over = Math.min(before.until, before.ended);
      if (use.granted < over)
        wrong.push(
          `${item}: ${use.life} has it from ${use.granted}, ${before.life} until ${over} (token ${token})`,
        );
    }
  }
  const offsets = those("start").map(({ offsetMs }) => offsetMs);
  return {
    claims: those("claim").length,
    ...counts,
    offsets: [Math.min(...offsets), Math.max(...offsets)],
    wrong,
  };
}
