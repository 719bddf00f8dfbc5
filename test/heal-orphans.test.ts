// Short (`npm test`): a worker that was stopped as a whole (SIGSTOP) and then killed: its reaper could do nothing. Real processes, lease 3 s.
import { expect, test, vi } from "vitest";
import { healFleet, measured, ms, slotsOf, untilSpread } from "./support/heal-fleet.ts";
import { TICKER } from "./support/heal-ticker.ts";
import { PLACES, type Place } from "./support/places.ts";
import { descendants, isAlive } from "./support/processes.ts";

// On Redis: the other worker stands still meanwhile as well, and on a SQLite file it might do so with the lock in its hands.
const REDIS = PLACES.find(({ name }) => name === "Redis") as Place;

test("the next worker of the machine ends what such a worker has left behind, and nothing of one that still lives", async () => {
  const fleet = await healFleet(REDIS, TICKER);
  const one = fleet.worker("one");
  await untilSpread(fleet, { one: 4 });
  const two = fleet.worker("two");
  await untilSpread(fleet, { one: 2, two: 2 });
  const left = descendants(one.pid);
  const others = [two.pid, ...descendants(two.pid)];
  // A child and a reaper each.
  expect([left.length, others.length]).toEqual([2, 3]);

  for (const pid of [one.pid, ...left, ...others]) process.kill(pid, "SIGSTOP");
  one.signal("SIGKILL");
  await vi.waitFor(() => expect(isAlive(one.pid)).toBe(false), { interval: 5 });
  // Nobody is left to end them. (Any worker that starts on this machine does, also one of another test: so this is looked at once.)
  expect(left.filter(isAlive)).toEqual(left);

  const at = performance.now();
  const again = fleet.worker("one");
  await vi.waitFor(() => expect(left.filter(isAlive)).toEqual([]), { timeout: 10_000, interval: 20 });
  measured(
    "processes of a worker stopped and killed, gone after the start of the next",
    ms(performance.now() - at),
  );
  await again.until((text) => text.includes("as worker one"));
  expect(others.filter(isAlive)).toEqual(others);

  for (const pid of others) process.kill(pid, "SIGCONT");
  await untilSpread(fleet, { one: 2, two: 2 });
  expect([two.pid, ...descendants(two.pid)]).toEqual(others);
  expect(await slotsOf(fleet, "two")).toHaveLength(2);
  for (const worker of [again, two]) worker.signal("SIGTERM");
  expect([await again.ended, await two.ended]).toEqual([0, 0]);
  // The pipes of the killed one were held open by those that are gone now.
  expect(await one.ended).toBe(null);
}, 60_000);
