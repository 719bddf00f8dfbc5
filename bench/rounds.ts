/** One side of a comparison: does its work once and answers its figure for that round. */
export type Side = () => Promise<number>;

/**
 * Runs all sides in turn, round after round, every other round backwards, so that neither a slow phase of the machine nor the
 * order favours one of them. The first round only warms up and is not counted. Answers one row of figures per side.
 */
export async function interleave(rounds: number, sides: readonly Side[]): Promise<number[][]> {
  const figures: number[][] = sides.map(() => []);
  for (let round = 0; round <= rounds; round++) {
    const order = [...sides.keys()];
    if (round % 2 === 1) order.reverse();
    for (const at of order) {
      const figure = await (sides[at] as Side)();
      if (round > 0) figures[at]?.push(figure);
    }
  }
  return figures;
}

/** `callers` calls under way at any time for `ms` milliseconds, each caller waiting for its call before the next. Calls per second. */
export async function inFlight(callers: number, ms: number, call: () => Promise<unknown>): Promise<number> {
  let done = 0;
  const started = performance.now();
  const end = started + ms;
  const caller = async () => {
    while (performance.now() < end) {
      await call();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return (done * 1000) / (performance.now() - started);
}

/** How long each of `count` calls took, one after the other, in microseconds. `pauseMs` between them keeps the link idle. */
export async function oneByOne(count: number, call: () => Promise<unknown>, pauseMs = 0): Promise<number[]> {
  const took: number[] = [];
  for (let i = 0; i < count; i++) {
    if (pauseMs > 0) await pause(pauseMs);
    const started = performance.now();
    await call();
    took.push((performance.now() - started) * 1000);
  }
  return took;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
