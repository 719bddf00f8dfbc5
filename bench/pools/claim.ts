// P9: a claim among many items of which few match, when one is free and when none is, beside a script that does nothing.
import { openFleet } from "../../src/index.ts";
import { rawClient, type RawClient } from "../redis.ts";
import { line, type Line } from "../result.ts";
import { interleave, pause } from "../rounds.ts";
import { scriptMicros } from "../server-time.ts";
import { median } from "../stats.ts";
import type { Bench } from "../suite.ts";
import { fill, sessionPool, siteOf } from "./sessions.ts";

const POOL = sessionPool("sessions");
const HALVES = sessionPool("halves");
const PAUSE_MS = 2;
const HOLD = { holdSeconds: 86_400 };
/** Of the two halves: so many items bear both tags, one in ten thousand. */
const OVERLAP = 10_000;

export async function claim({ redisUrl, rounds, quick }: Bench): Promise<Line[]> {
  const count = quick ? 200 : 2000;
  const items = quick ? 20_000 : 100_000;
  const store = `${redisUrl}/1`;
  const fleet = await openFleet({ store });
  const client = await rawClient(store);
  const noop = await noopScript(client);

  await fill(fleet, POOL, items, (i) => ({ site: siteOf(i), region: `r${i % 5}`, tier: i % 2 ? "a" : "b" }));
  // Half of the items bear `region: yes`, half `tier: yes`, and hardly any both.
  await fill(fleet, HALVES, items, (i) => {
    const both = i % OVERLAP === 0;
    return { site: "any", region: both || i % 2 === 1 ? "yes" : "no", tier: i % 2 === 0 ? "yes" : "no" };
  });
  const rare = fleet.pool(POOL).where({ site: "rare" });
  const busy = fleet.pool(POOL).where({ site: "busy" });
  const absent = fleet.pool(POOL).where({ site: "absent" });
  const both = fleet.pool(HALVES).where({ region: "yes", tier: "yes" });
  for (let held = await busy.count("free"); held > 0; held -= 100) {
    const some = await busy.claimMany(Math.min(100, held), HOLD);
    if (some === null) throw new Error("the items that are to be held were not there");
  }

  /** p50 of one claim, of which the release is not counted. */
  const claimed =
    (selection: typeof rare, times = count, pauseMs = 0) =>
    () =>
      timed(times, pauseMs, async () => {
        const lease = await selection.claim(HOLD);
        if (lease === null) throw new Error("nothing was free");
        return lease;
      });
  const none =
    (selection: typeof rare, times = count, pauseMs = 0) =>
    () =>
      timed(times, pauseMs, async () => {
        if ((await selection.claim(HOLD)) !== null) throw new Error("something was free");
      });
  const nothingDone =
    (times = count, pauseMs = 0) =>
    () =>
      timed(times, pauseMs, async () => void (await noop()));
  const [free = [], held = [], nothing = [], halves = [], empty = []] = await interleave(rounds, [
    claimed(rare),
    none(busy),
    none(absent),
    // Each takes as long as hundreds of the others.
    claimed(both, count / 100),
    nothingDone(),
  ]);
  // With pauses, after which all processes have gone to sleep: as in programs that do something with what they claim.
  const some = count / 10;
  const [freePaced = [], heldPaced = [], emptyPaced = []] = await interleave(rounds, [
    claimed(rare, some, PAUSE_MS),
    none(busy, some, PAUSE_MS),
    nothingDone(some, PAUSE_MS),
  ]);

  // On the server alone: claims that find nothing, and claims with their releases beside empty calls in the same number.
  const [emptyMicros = [], noneMicros = [], pairMicros = []] = await interleave(Math.min(rounds, 5), [
    () => scriptMicros(client, nothingDone()),
    () => scriptMicros(client, none(busy)),
    () => scriptMicros(client, claimed(rare)),
  ]);
  client.destroy();
  await fleet.close();
  await flush(store);

  const row = "P9";
  const among = `among ${items.toLocaleString("en-US")} items`;
  const theirs = { label: "EVALSHA of an empty script", unit: "µs", rounds: empty };
  const server = { label: "EVALSHA of an empty script", unit: "µs of the server", rounds: emptyMicros };
  const ours = (figures: number[]) => ({ label: "fleet claim", unit: "µs", rounds: figures });
  return [
    line({
      row,
      what: `claim ${among}, 1 % match, p50`,
      ours: ours(free),
      theirs,
      target: { is: "at most", value: 1.8 },
    }),
    line({
      row,
      what: "the same, all that match are held",
      ours: ours(held),
      theirs,
      target: { is: "at most", value: 1.3 },
    }),
    line({
      row,
      what: "the same, none bears the tag",
      ours: ours(nothing),
      theirs,
      target: { is: "at most", value: 1.3 },
    }),
    line({
      row,
      what: `claim ${among} by two tags that half of them bear and one in ten thousand bears both`,
      ours: ours(halves),
      theirs,
    }),
    line({
      row,
      what: "one free, idle link",
      ours: ours(freePaced),
      theirs: { ...theirs, rounds: emptyPaced },
    }),
    line({
      row,
      what: "all that match are held, idle link",
      ours: ours(heldPaced),
      theirs: { ...theirs, rounds: emptyPaced },
    }),
    line({
      row,
      what: "time on the server: a claim and a release, per call",
      ours: { label: "claim, release", unit: "µs of the server", rounds: pairMicros },
      theirs: server,
    }),
    line({
      row,
      what: "time on the server: a claim while all that match are held",
      ours: { label: "claim", unit: "µs of the server", rounds: noneMicros },
      theirs: server,
    }),
  ];
}

interface Given {
  release(): Promise<void>;
}

/** p50 of so many calls, one after the other; what a call got is given back before the next one. */
async function timed(count: number, pauseMs: number, call: () => Promise<Given | void>): Promise<number> {
  const took: number[] = [];
  for (let at = 0; at < count; at++) {
    if (pauseMs > 0) await pause(pauseMs);
    const started = performance.now();
    const got = await call();
    took.push((performance.now() - started) * 1000);
    await got?.release();
  }
  return median(took);
}

async function noopScript(client: RawClient): Promise<() => Promise<unknown>> {
  const sha = (await client.sendCommand(["SCRIPT", "LOAD", "return 1"])) as unknown as string;
  return () => client.sendCommand(["EVALSHA", sha, "1", "{bench}:noop", ""]);
}

async function flush(store: string): Promise<void> {
  const client = await rawClient(store);
  await client.sendCommand(["FLUSHDB"]);
  client.destroy();
}
