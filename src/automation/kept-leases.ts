import { machineMs, monotonicMs } from "../internal/timers.ts";
import type { KeptLease, Keeping, LeaseKeeper } from "../primitives/lease-keeper.ts";
import type { FromHost, LeaseKind, ToHost } from "../protocol/host.ts";

/**
 * Has the supervisor keep the leases of this process: it tells which, and passes on what it hears of them. So user code that keeps
 * the event loop busy for longer than a hold loses none of them.
 */
export class KeptLeases implements LeaseKeeper {
  readonly #say: (message: FromHost) => void;
  readonly #markedUntil: (place: number, number: number) => number;
  readonly #used = new Set<string>();
  readonly #leases = new Map<number, KeptLease>();
  /** Places below `#places` that are free again. */
  readonly #free: number[] = [];
  #places = 0;
  #last = 0;

  /** `markedUntil`: what the supervisor has noted of a lease, in machine-wide monotonic milliseconds; 0 for nothing. */
  constructor(
    say: (message: FromHost) => void,
    markedUntil: (place: number, number: number) => number = () => 0,
  ) {
    this.#say = say;
    this.#markedUntil = markedUntil;
  }

  uses(kind: LeaseKind, name: string): void {
    const key = `${kind} ${name}`;
    if (this.#used.has(key)) return;
    this.#used.add(key);
    this.#say({ type: "uses", kind, name });
  }

  keep(lease: KeptLease): Keeping {
    const number = (this.#last += 1);
    const place = this.#free.pop() ?? this.#places++;
    this.#leases.set(number, lease);
    const { kind, name, id, token, holdMs } = lease;
    this.#say({ type: "keep", lease: { number, place, kind, name, id, token, holdMs } });
    return {
      knownUntil: () => ownTime(this.#markedUntil(place, number)),
      letGo: (over) => {
        if (!this.#leases.delete(number)) return;
        this.#free.push(place);
        this.#say({ type: "let-go", number, over });
      },
    };
  }

  hear(leases: Extract<ToHost, { type: "kept" }>["leases"]): void {
    for (const { number, until } of leases) {
      const lease = this.#leases.get(number);
      if (until === null) lease?.lost();
      else lease?.renewed(ownTime(until));
    }
  }
}

/** Each process counts its monotonic time from its own start. */
function ownTime(machineTime: number): number {
  return machineTime === 0 ? 0 : machineTime - machineMs() + monotonicMs();
}
