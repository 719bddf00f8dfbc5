/**
 * Room for slots that only full workers suit: those pass slots of other automations on to workers that have room for them.
 *
 * Slots and the room of workers are the two sides of a bipartite graph, and what is placed is a matching in it. From a slot without
 * a worker a shortest augmenting path is searched for, breadth first: to a worker that suits it, from there with a slot that it runs to
 * another worker that suits that, and so on to one with room. Along it each slot moves one worker on; then one slot more has a
 * worker, and none has lost its own. Where no such path begins, no arrangement at all holds this slot together with all that are placed
 * (C. Berge, "Two theorems in graph theory", PNAS 43, 1957). The method is H. W. Kuhn's ("The Hungarian method for the assignment
 * problem", Naval Research Logistics Quarterly 2, 1955); J. E. Hopcroft and R. M. Karp ("An n^5/2 algorithm for maximum matchings in
 * bipartite graphs", SIAM Journal on Computing 2, 1973) search from all slots at once, which pays only for far more of them.
 *
 * Slots of one automation are alike here, so a search looks at each worker and each automation once: O(A · W) for A automations and W
 * workers, once for each slot that is placed this way and once for each automation that finds none. It costs nothing while no slot waits.
 */
import { byShare, hasRoom, type Homeless, type Load, move, put, share } from "./load.ts";

/** Where a slot ran before, if it did. */
type RanOn = (slot: Homeless) => string | undefined;

/** A worker that a path has come to. */
interface Step {
  load: Load;
  /** The automation of which it would get a slot. */
  gets: string;
  /** Who would give that; undefined where it is the slot without a worker itself. */
  from: Step | undefined;
}

/** Places what can be placed by moving others; answers what cannot. Nobody's slots move to or from a cordoned worker. */
export function makeRoom(loads: readonly Load[], homeless: readonly Homeless[], ranOn: RanOn): Homeless[] {
  const open = loads.filter((load) => !load.cordoned);
  // What finds no path now finds none after others have been placed, either.
  const without = new Set<string>();
  return homeless.filter((slot) => {
    const end = without.has(slot.name) ? undefined : shortestPath(open, slot.name);
    if (end === undefined) without.add(slot.name);
    else passOn(end, slot, ranOn);
    return end === undefined;
  });
}

/** The last step of it: a worker with room. */
function shortestPath(open: readonly Load[], name: string): Step | undefined {
  const seen = new Set<Load>();
  const passed = new Set<string>();
  const steps: Step[] = [];
  const pass = (gets: string, from?: Step) => {
    if (passed.has(gets)) return;
    passed.add(gets);
    const reached = open.filter((load) => load.suits.has(gets) && !seen.has(load)).toSorted(byShare(gets));
    for (const load of reached) {
      seen.add(load);
      steps.push({ load, gets, from });
    }
  };
  pass(name);
  // It grows on the way.
  for (const step of steps) {
    if (hasRoom(step.load)) return step;
    const { load } = step;
    for (const other of [...load.of.keys()].toSorted()) if (share(load, other) > 0) pass(other, step);
  }
  return undefined;
}

/** From its end, so that no worker ever has more than its capacity. */
function passOn(end: Step, slot: Homeless, ranOn: RanOn): void {
  let step = end;
  for (; step.from !== undefined; step = step.from) {
    const { load, gets: name } = step;
    move(step.from.load, load, { name, slotId: whichOf(step.from.load, name, ranOn) });
  }
  put(step.load, slot);
}

/** Rather one that does not run there yet: to move that costs no restart. Of these the highest, as for evenness. */
function whichOf({ id, of }: Load, name: string, ranOn: RanOn): number {
  const slots = [...(of.get(name) ?? [])];
  const fresh = slots.filter((slotId) => ranOn({ name, slotId }) !== id);
  return Math.max(...(fresh.length > 0 ? fresh : slots));
}
