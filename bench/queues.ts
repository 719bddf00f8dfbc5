import { cost } from "./queues/cost.ts";
import { startLatency } from "./queues/start-latency.ts";
import { submit } from "./queues/submit.ts";
import { throughput } from "./queues/throughput.ts";
import type { Suite } from "./suite.ts";

/** What queues and batch automations cost, beside BullMQ. */
export const queues: Suite = {
  method: [
    "Both sides in one run, in turn, order reversed every other round; one round to warm up. A ratio is the median of the",
    "rounds' ratios, with the lowest and highest in brackets; a figure the median over the rounds. The same payload on both",
    "sides (about 90 bytes of JSON), one Redis of the run's own on loopback without persistence, results kept for an hour or",
    "the newest 10 000. Tasks run in one process on either side: a child of `fleet worker`, and a BullMQ Worker.",
  ],
  parts: [
    { rows: ["P6"], run: submit },
    { rows: ["P7"], run: throughput },
    { rows: ["P8"], run: startLatency },
    { rows: ["P13"], run: cost },
  ],
};
