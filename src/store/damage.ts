// Records that cannot be read: they are left out, noted, and told of once.
import { messageOf } from "../errors.ts";

/** What a record is of, and what follows once a damaged one is deleted. */
const AFTERWARDS = {
  worker: "the worker enters itself anew",
  "slots of a worker": "the worker reports them anew with their next change",
  "desired state":
    "workers that have run it put back what they knew last, and where none has, deploy it again",
  assignments: "nothing else has to be done: the leader writes them anew by itself",
  lease: "the slot can be claimed again",
  manifest: "the worker publishes it anew when it is started again",
  health: "the slot's history begins anew",
  "config version": "that change is not in the history any more",
  "wish for a worker": "say again what is asked of the worker",
  schedule: "put it again, or start a worker that declares it",
  refill: "the next claim leaves it again",
  "observed use": "it is counted anew",
} as const;
export type RecordKind = keyof typeof AFTERWARDS;

/** A record in the store that cannot be read, and so counts as not there. */
export interface DamagedRecord {
  kind: RecordKind;
  /** Of what: the automation, the worker, the slot as `automation/slot`. At most 200 characters. */
  name: string;
  /** The key or the row where it stands. */
  where: string;
  reason: string;
  /** What to do about it. */
  remedy: string;
}

/** Where the records of one place stand: as words, and what deletes one. Texts are cut where they are longer than anybody can read. */
export interface Place {
  kind: RecordKind;
  /** Tells places of one kind apart: the queue, the automation. */
  of?: string;
  where: (name: string) => { where: string; remove: string };
}

const LONGEST_NAME = 200;
/** Of one place. What is beyond is left out all the same. */
const MOST = 100;
const MOST_PLACES = 1000;

type Tell = (level: "error", message: string, fields: Record<string, unknown>) => void;

/** What one connection has found at its latest looks. */
export class DamageBook {
  readonly #log: Tell | undefined;
  readonly #found = new Map<string, readonly DamagedRecord[]>();

  constructor(log: Tell | undefined) {
    this.#log = log;
  }

  all(): DamagedRecord[] {
    return [...this.#found.values()].flat();
  }

  /**
   * Reads all records of a place. One that `read` throws on is not in the answer, and stands in `all` until a later look finds it well or
   * gone. In the log it is told of when it appears.
   */
  look<V, T>(
    place: Place,
    records: Iterable<readonly [name: string, value: V]>,
    read: (value: V, name: string) => T,
  ): { good: [name: string, value: T][]; damaged: DamagedRecord[] } {
    const good: [string, T][] = [];
    const damaged: DamagedRecord[] = [];
    for (const [name, value] of records) {
      try {
        good.push([name, read(value, name)]);
      } catch (error) {
        if (damaged.length < MOST) damaged.push(describe(place, name, messageOf(error)));
      }
    }
    this.#note(place, damaged);
    return { good, damaged };
  }

  #note({ kind, of = "" }: Place, damaged: readonly DamagedRecord[]): void {
    const key = `${kind} ${of}`;
    const before = this.#found.get(key);
    if (before === undefined && damaged.length === 0) return;
    const told = new Set(before?.map(textOf));
    for (const record of damaged) {
      if (told.has(textOf(record))) continue;
      const { name, where, reason, remedy } = record;
      this.#log?.("error", `a record in the store cannot be read (${kind}); it counts as not there`, {
        name,
        where,
        reason,
        remedy,
      });
    }
    if (damaged.length === 0) this.#found.delete(key);
    else if (before !== undefined || this.#found.size < MOST_PLACES) this.#found.set(key, damaged);
  }
}

function describe({ kind, where: locate }: Place, name: string, reason: string): DamagedRecord {
  const { where, remove } = locate(name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name);
  const remedy = `delete it (${remove}), then ${AFTERWARDS[kind]}; if a newer version of Fleet wrote it, use that one here`;
  return { kind, name: name.slice(0, LONGEST_NAME), where, reason: reason.slice(0, 500), remedy };
}

function textOf({ where, reason }: DamagedRecord): string {
  return `${where} ${reason}`;
}
