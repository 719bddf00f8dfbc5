import { canonicalJson } from "../../internal/canonical.ts";
import type { ScheduleRecord, ScheduleSpec } from "../../protocol/task.ts";
import type { DamageBook } from "../damage.ts";
import type { QueueStore } from "../queue-store.ts";
import { ofId, schedule, storedNumber } from "../records.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import { tablePlace } from "./places.ts";
import type { Writer } from "./writer.ts";

export type QueueSchedules = Pick<
  QueueStore,
  "putSchedule" | "removeSchedule" | "pauseSchedule" | "schedules" | "ticked"
>;

type Columns = readonly [
  ...[spec: string | null, paused: number, since: number],
  ...[lastTick: number | null, revision: number],
];

type Row = readonly [spec: string, ...Tail];
type Tail = Columns extends readonly [unknown, ...infer Rest] ? Rest : never;

const COLUMNS = "spec, paused, since, last_tick, revision";
const WHERE = "FROM queue_schedules WHERE ns = ? AND queue = ?";
const GET = `SELECT ${COLUMNS} ${WHERE} AND id = ?`;
const ALL = `SELECT id, ${COLUMNS} ${WHERE} AND spec IS NOT NULL ORDER BY id`;
const PUT = `INSERT INTO queue_schedules (spec, paused, since, last_tick, revision, ns, queue, id)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (ns, queue, id) DO UPDATE SET spec = excluded.spec,
  paused = excluded.paused, since = excluded.since, last_tick = excluded.last_tick, revision = excluded.revision,
  removed_at = NULL`;
const REMOVE = `UPDATE queue_schedules SET spec = NULL, removed_at = ?, revision = revision + 1
  WHERE ns = ? AND queue = ? AND id = ? AND spec IS NOT NULL AND revision = coalesce(?, revision)`;
/** What passes while it is paused is nobody's miss: ticks count from the resumption. */
const PAUSE = `UPDATE queue_schedules SET paused = ?, since = CASE WHEN ? = 1 THEN since ELSE ? END, revision = revision + 1
  WHERE ns = ? AND queue = ? AND id = ? AND paused <> ?`;
const TICKED = `UPDATE queue_schedules SET last_tick = ? WHERE ns = ? AND queue = ? AND id = ? AND revision = ?
  AND spec IS NOT NULL AND (last_tick IS NULL OR last_tick < ?)`;

/** The schedules of all queues. One that was removed stays as a mark, so that neither its revisions nor its ticks come again. */
export function createQueueSchedules(parts: {
  db: Database;
  ns: string;
  clock: Clock;
  writer: Writer;
  damage: DamageBook;
}): QueueSchedules {
  const { db, ns, clock, writer, damage } = parts;

  const read = (queue: string, id: string) => db.sql(GET).get<Columns>(ns, queue, id);
  /** One that cannot be read is as good as none: what is put takes its place. */
  const present = (queue: string, id: string) => {
    const [spec = null, ...rest] = read(queue, id) ?? [];
    try {
      return spec === null ? undefined : toRecord([spec, ...rest] as Row);
    } catch {
      return undefined;
    }
  };

  function write(queue: string, { spec, paused, since, lastTick, revision }: ScheduleRecord): void {
    const values = [JSON.stringify(spec), Number(paused), since, lastTick, revision];
    db.sql(PUT).run(...values, ns, queue, spec.id);
  }

  return {
    putSchedule({ queue, spec }) {
      const unchanged = () => {
        const record = present(queue, spec.id);
        return record !== undefined && same(record.spec, spec) ? record : undefined;
      };
      return writer.write(
        () => {
          const same = unchanged();
          if (same !== undefined) return same;
          const revision = (read(queue, spec.id)?.[4] ?? 0) + 1;
          const record = changed(present(queue, spec.id), spec, revision, clock());
          write(queue, record);
          return record;
        },
        { shortcut: unchanged },
      );
    },

    removeSchedule({ queue, id, revision = null }) {
      return writer.write(() => {
        const { changes } = db.sql(REMOVE).run(clock(), ns, queue, id, revision);
        return changes === 0 ? "unknown" : "removed";
      });
    },

    pauseSchedule({ queue, id, paused }) {
      return writer.write(() => {
        if (present(queue, id) === undefined) return "unknown";
        db.sql(PAUSE).run(Number(paused), Number(paused), clock(), ns, queue, id, Number(paused));
        return "done";
      });
    },

    schedules({ queue }) {
      return writer.read(() => {
        const { good } = damage.look(
          tablePlace("schedule", { table: "queue_schedules", ns, key: ["id"], of: ["queue", queue] }),
          db
            .sql(ALL)
            .all<[id: string, ...Row]>(ns, queue)
            .map(([id, ...row]) => [id, row] as const),
          (row, id) => ofId(toRecord(row), id),
        );
        return { now: clock(), schedules: good.map(([, record]) => record) };
      });
    },

    ticked({ queue, id, tick, revision }) {
      return writer.write(() => {
        db.sql(TICKED).run(tick, ns, queue, id, revision, tick);
      });
    },
  };
}

/** A schedule's record after its spec was put. Ticks count anew where the timing is another. */
function changed(
  before: ScheduleRecord | undefined,
  spec: ScheduleSpec,
  revision: number,
  now: number,
): ScheduleRecord {
  const fresh = { spec, paused: before?.paused ?? false, since: now, lastTick: null, revision };
  if (before === undefined || !same(before.spec.timing, spec.timing)) return fresh;
  return { ...fresh, since: before.since, lastTick: before.lastTick };
}

function same(a: unknown, b: unknown): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

function toRecord([spec, paused, since, lastTick, revision]: Row): ScheduleRecord {
  return {
    spec: schedule(spec),
    paused: paused === 1,
    since: storedNumber(since, "since"),
    lastTick: lastTick === null ? null : storedNumber(lastTick, "last_tick"),
    revision: storedNumber(revision, "revision"),
  };
}
