import { concurrentEmits } from "./streams/concurrent-emits.ts";
import { idleFleet } from "./streams/idle-fleet.ts";
import { loneEmit } from "./streams/lone-emit.ts";
import { memory } from "./streams/memory.ts";
import { pop } from "./streams/pop.ts";
import { reload } from "./streams/reload.ts";
import { size } from "./streams/size.ts";
import { sqlite } from "./streams/sqlite.ts";
import { wakeUp } from "./streams/wake-up.ts";
import type { Suite } from "./suite.ts";

/** What streams cost, and what the processes that run them cost. */
export const streams: Suite = {
  method: [
    "Both sides in one run, in turn, order reversed every other round; one round to warm up. A ratio is the median of the",
    "rounds' ratios, with the lowest and highest in brackets; a figure the median over the rounds. The same payload on both",
    "sides (about 90 bytes of JSON), a Redis of the run's own on loopback, no persistence, the same client options.",
  ],
  parts: [
    { rows: ["P1"], run: concurrentEmits },
    { rows: ["P2"], run: loneEmit },
    { rows: ["P3"], run: wakeUp },
    { rows: ["P4"], run: pop },
    { rows: ["P5"], run: sqlite },
    { rows: ["P12"], run: idleFleet },
    { rows: ["P13"], run: size },
    { rows: ["P14"], run: memory },
    { rows: ["P15"], run: reload },
  ],
};
