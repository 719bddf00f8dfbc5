import { claim } from "./pools/claim.ts";
import { memory } from "./pools/memory.ts";
import { size } from "./pools/size.ts";
import type { Suite } from "./suite.ts";

/** What pools cost: a claim beside an empty round trip, an item in memory, and both by the number of items. */
export const pools: Suite = {
  method: [
    "Both sides in one run, in turn, order reversed every other round; one round to warm up. A ratio is the median of the",
    "rounds' ratios, with the lowest and highest in brackets; a figure the median over the rounds. Claims are made one at a",
    "time through `pool(…).where(…)`, payload and lease included; each is released outside the time that is taken. The other",
    "side is `EVALSHA` of a script that does nothing, by the bare client with the same options. A Redis of the run's own.",
  ],
  parts: [
    { rows: ["P9"], run: claim },
    { rows: ["P10"], run: memory },
    { rows: ["P13"], run: size },
  ],
};
