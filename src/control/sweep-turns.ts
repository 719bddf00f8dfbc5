/** One step of somebody's sweep; `more`: it is not done with it. */
export type SweepStep = () => Promise<{ more: boolean }>;

/**
 * Sweeps until all are done, one step of each in turn: whoever has much to clear away keeps nobody waiting, and is cleared faster than
 * anything can be made. Ends early where `goOn` says so; between rounds this process gets to do other things.
 */
export async function sweepInTurns(steps: readonly SweepStep[], goOn: () => boolean): Promise<void> {
  for (let open = [...steps]; open.length > 0;) {
    const next: SweepStep[] = [];
    for (const step of open) {
      if (!goOn()) return;
      if ((await step()).more) next.push(step);
    }
    open = next;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
