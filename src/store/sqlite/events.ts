import { matchesTopic, type BusEvent } from "../../protocol/event.ts";
import type { EventStore, NewEvent } from "../store.ts";
import type { Watch } from "../watch.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import { call, type Notifier } from "./notify.ts";
import type { Participant, Writer } from "./writer.ts";

/** How many events the ring keeps, over all namespaces, for subscribers that are a moment late. */
const RING_LENGTH = 10_000;
/** How many characters of payload it keeps. */
const RING_CHARS = 32 * 1024 * 1024;
/** How long it keeps them at most. */
const RING_MS = 60_000;
/** How many events are read at once, and how many topics are read or forgotten. */
const PAGE = 1000;

const LAST_SEQ = "SELECT seq FROM topics WHERE ns = ? AND topic = ?";
const PUT_SEQ = "INSERT OR REPLACE INTO topics (ns, topic, seq, at) VALUES (?, ?, ?, ?)";
/** By the time of their last event, or by a prefix of their names: so none is looked at that is not silent, or named otherwise. */
const SILENT = "FROM topics WHERE ns = ? AND at <= ? LIMIT";
const SILENT_WITHIN = "FROM topics WHERE ns = ? AND +at <= ? AND topic >= ? AND topic < ? LIMIT";
const anyOf = (silent: string) => `SELECT 1 ${silent} 1`;
const forgetOf = (silent: string) =>
  `DELETE FROM topics WHERE (ns, topic) IN (SELECT ns, topic ${silent} ${PAGE})`;
const TOPICS = `SELECT topic, seq FROM topics WHERE ns = ? AND topic >= ? AND topic < ? ORDER BY topic
  LIMIT ${PAGE}`;
const FIRST_SEQS = "SELECT topic, min(seq) FROM events WHERE id > ? AND ns = ? GROUP BY topic";
const PUBLISH =
  "INSERT INTO events (ns, topic, seq, ts, source, payload, total) VALUES (?, ?, ?, ?, ?, ?, ?)";
const LAST_ID = "SELECT seq FROM sqlite_sequence WHERE name = 'events'";
const CUT = "DELETE FROM events WHERE id <= ?";
const LAST_TOTAL = "SELECT total FROM events ORDER BY id DESC LIMIT 1";
const FIRST_TO_KEEP = "SELECT id FROM events WHERE ts > ? AND total > ? ORDER BY id LIMIT 1";
const NEWER =
  "SELECT id, topic, seq, ts, source, payload FROM events WHERE id > ? AND ns = ? ORDER BY id LIMIT ?";

/** Behind all text: topics are ASCII. */
const LAST_CHARACTER = "\u{10ffff}";

type TopicColumns = readonly [topic: string, seq: number];
type EventColumns = readonly [number, string, number, number, string, string];

interface Subscriber {
  pattern: string;
  /** The ring's last id when it subscribed. */
  after: number;
  onEvent: (event: BusEvent) => void;
}

/**
 * Events go into a ring in the file; every process reads on from its own cursor when it hears of a commit. Who comes so late
 * that the ring was cut meanwhile goes on with what is there: the gap shows in `seq`.
 */
export function createEvents(parts: {
  db: Database;
  ns: string;
  fleetId: string;
  clock: Clock;
  writer: Writer;
  notifier: Notifier;
}): EventStore {
  const { db, ns, fleetId, clock, writer, notifier } = parts;
  const subscribers = new Set<Subscriber>();
  /** The last id that was handed out. */
  let cursor = 0;
  /** Last `seq` of the topics that the present transaction publishes to. */
  const seqs = new Map<string, number>();
  /** Characters of all payloads up to the transaction's last event. */
  let total: number | undefined;

  const participant: Participant = {
    flush() {
      if (seqs.size === 0) return;
      for (const [topic, seq] of seqs) db.sql(PUT_SEQ).run(ns, topic, seq, clock());
      cutRing(total ?? 0);
    },
    committed() {
      const published = seqs.size > 0;
      forget();
      if (published) call(notifier, deliver);
    },
    rolledBack: forget,
  };
  writer.join(participant);
  notifier.onForeignCommit(deliver);
  // Another file has a ring of its own, whose ids say nothing about those of the old one.
  db.onReplaced(() => {
    cursor = lastId();
    for (const subscriber of subscribers) subscriber.after = cursor;
  });

  function forget(): void {
    seqs.clear();
    total = undefined;
  }

  function lastId(): number {
    return db.sql(LAST_ID).get<[number]>()?.[0] ?? 0;
  }

  /** Only rows at the ring's old end are looked at, as many as go. */
  function cutRing(last: number): void {
    const id = lastId();
    const keep = db.sql(FIRST_TO_KEEP).get<[number]>(clock() - RING_MS, last - RING_CHARS)?.[0] ?? id + 1;
    db.sql(CUT).run(Math.max(id - RING_LENGTH, keep - 1));
  }

  /** Hands out what is new. Returns whether anybody wanted it. */
  function deliver(): boolean {
    if (subscribers.size === 0) return false;
    let wanted = false;
    for (;;) {
      const rows = db.sql(NEWER).all<EventColumns>(cursor, ns, PAGE);
      for (const row of rows) {
        cursor = row[0];
        wanted = hand(row) || wanted;
      }
      if (rows.length < PAGE) return wanted;
    }
  }

  function hand([id, topic, seq, ts, source, payload]: EventColumns): boolean {
    const takers = [...subscribers].filter((s) => id > s.after && matchesTopic(s.pattern, topic));
    for (const taker of takers) {
      call(notifier, () => {
        if (!subscribers.has(taker)) return;
        taker.onEvent({ topic, ts, source, seq, fleet: fleetId, payload: JSON.parse(payload) });
      });
    }
    return takers.length > 0;
  }

  function subscribe(pattern: string, onEvent: (event: BusEvent) => void) {
    const release = notifier.hold();
    const subscriber: Subscriber = { pattern, after: 0, onEvent };
    let open = true;
    const begun = writer.read(() => {
      participant.flush();
      if (open) {
        subscriber.after = lastId();
        if (subscribers.size === 0) cursor = subscriber.after;
        subscribers.add(subscriber);
      }
      return { page: pageOf(pattern, prefixOf(pattern)), id: lastId() };
    });
    const baselines = begun.then(({ page, id }) => baselinesOf(pattern, page, id, () => open));
    const ready = begun.then(() => undefined);
    ready.catch(release);
    baselines.catch(() => undefined);
    const close = () => {
      open = false;
      subscribers.delete(subscriber);
      release();
      return Promise.resolve();
    };
    return { ready, baselines, close } satisfies Watch & { baselines: unknown };
  }

  /**
   * The last numbers of all topics that match, as of the first page. There may be very many, so they are read in steps, and others' calls
   * come in between: what was published meanwhile is known by the first event of it that is in the ring.
   */
  async function baselinesOf(
    pattern: string,
    first: readonly TopicColumns[],
    since: number,
    isOpen: () => boolean,
  ): Promise<ReadonlyMap<string, number>> {
    const seqs = new Map<string, number>();
    const before = new Map<string, number>();
    let [page, id] = [first, since];
    for (;;) {
      for (const [topic, seq] of page) if (matchesTopic(pattern, topic)) seqs.set(topic, seq);
      const last = page.at(-1)?.[0];
      if (page.length < PAGE || last === undefined || !isOpen()) break;
      const from = id;
      const step = await writer.read(() => {
        participant.flush();
        return {
          page: pageOf(pattern, last),
          published: db.sql(FIRST_SEQS).all<TopicColumns>(from, ns),
          id: lastId(),
        };
      });
      ({ page, id } = step);
      for (const [topic, seq] of step.published) if (!before.has(topic)) before.set(topic, seq - 1);
    }
    for (const [topic, seq] of before) if (seqs.has(topic)) seqs.set(topic, seq);
    return seqs;
  }

  /** From this topic on, it too. */
  function pageOf(pattern: string, from: string): TopicColumns[] {
    if (!pattern.includes("*")) {
      const seq = db.sql(LAST_SEQ).get<[number]>(ns, pattern)?.[0];
      return seq === undefined ? [] : [[pattern, seq]];
    }
    return db.sql(TOPICS).all<TopicColumns>(ns, from, prefixOf(pattern) + LAST_CHARACTER);
  }

  /** Within a transaction. */
  function insert({ topic, source, payload }: NewEvent): { seq: number; ts: number } {
    const last = seqs.get(topic) ?? db.sql(LAST_SEQ).get<[number]>(ns, topic)?.[0] ?? 0;
    const seq = last + 1;
    const ts = clock();
    total = (total ?? db.sql(LAST_TOTAL).get<[number]>()?.[0] ?? 0) + payload.length;
    db.sql(PUBLISH).run(ns, topic, seq, ts, source, payload, total);
    seqs.set(topic, seq);
    return { seq, ts };
  }

  return {
    publish: (event) => writer.write(() => insert(event), { bytes: event.payload.length }),
    publishMany: ({ events }) =>
      events.length === 0
        ? Promise.resolve([])
        : writer.write(() => events.map(insert), {
            bytes: events.reduce((sum, { payload }) => sum + payload.length, 0),
          }),
    async sweep({ prefix, silentMs }) {
      const silent = prefix === "" ? SILENT : SILENT_WITHIN;
      const names = prefix === "" ? [] : [prefix, prefix + LAST_CHARACTER];
      const which = () => [ns, clock() - silentMs, ...names] as const;
      for (let forgotten = 0; ;) {
        // A topic that this very transaction publishes to comes back with it, and its number with it.
        const step = await writer.write(() => db.sql(forgetOf(silent)).run(...which()).changes, {
          weight: PAGE,
          shortcut: () => (db.sql(anyOf(silent)).get(...which()) === undefined ? 0 : undefined),
        });
        forgotten += step;
        if (step < PAGE) return { forgotten };
      }
    },
    subscribe: ({ pattern }, onEvent) => subscribe(pattern, onEvent),
  };
}

/** What all topics that match a pattern begin with. */
function prefixOf(pattern: string): string {
  return pattern.split("*", 1)[0] as string;
}
