import { checkName } from "../contracts/name.ts";
import { checkOptions, integer, type OptionRules } from "../contracts/options.ts";
import { stateKey } from "../contracts/rate-limit.ts";
import { FleetError } from "../errors.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { CounterOp, CounterStore } from "../store/state-store.ts";
import type { Counter, CounterOptions } from "./counter.ts";
import { type StateUse } from "./state-use.ts";

const RULES: OptionRules<Required<CounterOptions>> = { key: stateKey };
const whole = integer();
/** How many changes of one name are under way at once. */
const PRODUCERS = 16;

interface Producer {
  id: string;
  seq: number;
}

/**
 * The producers of one name: each has at most one change under way, and numbers them, so that the store can tell a repeat. Changes beyond
 * those wait for their turn.
 */
class Producers {
  readonly #free: Producer[] = [];
  readonly #waiting: ((producer: Producer) => void)[] = [];
  #made = 0;

  async with<T>(work: (op: CounterOp) => Promise<T>): Promise<T> {
    const producer = this.#free.pop() ?? (await this.#next());
    try {
      producer.seq += 1;
      return await work({ producer: producer.id, seq: producer.seq });
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free.push(producer);
      else next(producer);
    }
  }

  #next(): Producer | Promise<Producer> {
    if (this.#made >= PRODUCERS) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#made += 1;
    return { id: uuidv7(), seq: 0 };
  }
}

/** The counters of one process. */
export class Counters {
  readonly #store: CounterStore;
  readonly #producers = new Map<string, Producers>();

  constructor(store: CounterStore) {
    this.#store = store;
  }

  counter(name: string, options: CounterOptions | undefined, use: StateUse): Counter {
    checkName("counter", name);
    const where = `counter ${JSON.stringify(name)}`;
    const { key = "" } = checkOptions<Required<CounterOptions>>(where, options, RULES);
    const ref = { name, key };
    const store = this.#store;
    const change = async <T>(work: (op: CounterOp) => Promise<T>): Promise<T> => {
      const result = await this.#of(name).with((op) => {
        use.fence?.();
        return work(op);
      });
      use.activity?.progress();
      return result;
    };
    return {
      async add(by = 1) {
        const checked = whole(by, `${where}: add`);
        const { outcome, value } = await change((op) => store.add({ ...ref, by: checked, op }));
        if (outcome === "done") return value;
        throw new FleetError(
          "FLEET_COUNTER_OVERFLOW",
          `${where} stands at ${value}; with ${checked} it would leave the range of exact whole numbers, so nothing was changed`,
        );
      },
      get: () => store.get(ref),
      async set(value) {
        const checked = whole(value, `${where}: set`);
        return (await change((op) => store.set({ ...ref, value: checked, op }))).before;
      },
      async compareAndSet(expected, value) {
        const from = whole(expected, `${where}: compareAndSet: expected`);
        const to = whole(value, `${where}: compareAndSet: value`);
        const { outcome } = await change((op) =>
          store.compareAndSet({ ...ref, expected: from, value: to, op }),
        );
        return outcome === "set";
      },
    };
  }

  #of(name: string): Producers {
    const known = this.#producers.get(name);
    if (known !== undefined) return known;
    const made = new Producers();
    this.#producers.set(name, made);
    return made;
  }
}
