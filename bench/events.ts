import { latency } from "./events/latency.ts";
import { publish } from "./events/publish.ts";
import { size } from "./events/size.ts";
import type { Suite } from "./suite.ts";

/** What events cost, beside pub/sub of the bare client, which counts nothing. */
export const events: Suite = {
  method: [
    "Both sides in one run, in turn, order reversed every other round; one round to warm up. A ratio is the median of the",
    "rounds' ratios, with the lowest and highest in brackets; a figure the median over the rounds. The same payload on both",
    "sides (about 90 bytes of JSON), checked by a schema on Fleet's, with a number per topic, the time and the source around it.",
    "The bare side publishes its JSON as it is. A Redis of the run's own on loopback, the same client options.",
  ],
  parts: [
    { rows: ["P11"], run: publish },
    { rows: ["P11"], run: latency },
    { rows: ["P13"], run: size },
  ],
};
