/**
 * Every key and channel name of the Redis back end is made here and nowhere else.
 *
 * `<p>` is the namespace prefix: empty, or `prod:`. The braces hold a primitive's whole key, so all that belongs to it hashes to
 * one cluster slot: `prod:stream:x` and `{prod:stream:x}:meta` do.
 */
import { checkNamespace } from "../../contracts/name.ts";

export interface StreamKeys {
  /** ZSET: member = envelope, score = store time in ms plus what keeps push order strict. */
  stream: string;
  /** HASH: bounds, last score, counters, and per producer `op:<producer>` -> `<seq>|<ts>` of its last push. */
  meta: string;
  /** LIST of entries that a consumer could not use, newest first. */
  quarantine: string;
  /** Channel: the stream went from empty to filled. */
  hint: string;
}

/**
 * A queue's names are many, and some bear ids: scripts put them together, `base` and what stands behind it.
 *
 * - `meta` HASH: settings; `seq`, `turn`, `token`, the last of each; `due`, no later than the first of `holders`, `delayed` and `ttl`; `idle`,
 *   how many stand there; `n:<total>` and `r:<reason>`, what only grows.
 * - `task:<id>` HASH: **p**ayload; fixed **v**alues `<flag> <priority> <maxAttempts> <timeoutMs> <ttlMs> <submitted at>`; **s**tate `s`cheduled,
 *   `w`aiting, `a`ctive, `c`ompleted, `f`ailed, `x` cancelled; its place (`o`) in its lane. Where they differ from none: lane (`k`), due
 *   (`u`), **e**xpires, **d**edupe key, asked for (`q`), tick (`j`) `<at> <schedule>`, print (`i`), counters (`g`) `<attempts> <crashes> <interruptions>`
 *   (none of a completed task: its first attempt),
 *   **h**older `<flag><holder>` and start (`b`) `<at> <worker>` of the last claim, **t**oken of the last claim that was settled, finish (`f`),
 *   **r**esult, reason (`x`), error (`m`). The flag is 1 where there is more to look at when it is claimed or ends: `e`, `d`, `q`, `j`;
 *   the holder's also for `k`, and where it is to be cancelled.
 * - `lane:-` ZSET of waiting tasks without a key, `lane:=<key>` of those with one; score = place: band of the priority, submission.
 * - `keyed` ZSET of all waiting tasks with a key, by place.
 * - `ring` ZSET of lanes to claim from, by band and turn; `blocked` SET of lanes that wait at their limit.
 * - `active` ZSET of claimed tasks; score = token. `busy:=<key>` SET of those of a key. `cancelling` SET of those to be cancelled.
 * - `held:<holder>` ZSET of a holder's tasks; score = end of lease. `holders` ZSET; score = no later than its first lease's end.
 * - `idle` HASH holder -> `<until> <wanted> <leaseMs> <worker>`: those that wait to be handed tasks.
 * - `delayed` ZSET by due time; `ttl` ZSET of waiting and delayed tasks by the end of their time to live.
 * - `completed`, `failed`, `cancelled` ZSETs; score = end in microseconds, strictly growing.
 * - `dedupe` HASH dedupe key -> `<throttled until> <id>`; `windows` ZSET of throttled dedupe keys by that time.
 * - `ticks` HASH schedule -> last tick with a task; `schedules` HASH, see `queue-put-schedule.lua`; `removed` ZSET of removed ones by when.
 */
export interface QueueKeys {
  /** `{<p>queue:<name>}:`, what all names of the queue begin with. */
  base: string;
  /** Channel: there is something to claim, where there was nothing before. */
  hint: string;
  /** Channel: `<fleet id> <task id>`, a task that was asked for has ended. */
  finished: string;
  /** Channel: tasks that are handed to a holder, see `queue-hand.lua`. */
  hand: (holder: string) => string;
}

/**
 * The locks of a name, one per key.
 *
 * - `meta` HASH: last fencing `token`, last place in line (`seq`).
 * - `grants` HASH key -> grant, see `lock.lua`; `ends` ZSET of those keys by the end of the lease.
 * - `line:<key>` ZSET of requests by place; `patience:<key>` ZSET of them by when each is forgotten unless it asks again; `waiters:<key>`
 *   HASH request -> since when and for whom. `lines` ZSET of keys with a line, score = no sooner than all in it are forgotten.
 */
export interface LockKeys {
  /** `{<p>lock:<name>}:`, what all of them begin with. */
  base: string;
  /** Channel: `<fleet id> <key>`, this lock may be free. */
  hint: string;
}

/**
 * As with queues, scripts put a pool's names together. An item's *number* is its place in the order in which all were put, its *mark* its
 * score in the sets that it is in; see `pool.lua`.
 *
 * - `meta` HASH: settings; `head`, see `pool-head.lua`; `renewing`, see `pool-renew.lua`.
 * - `ids:<n>` HASHes id -> number, small ones (`pool-item.lua`); ids are shortened by `pool-compact.ts`.
 * - `items` HASH number -> what was put, its use and its claim; `large` HASH number -> its payload where that is long.
 * - `tag:<name>=<value>` ZSETs of numbers by mark: those that bear the value (both in URI encoding).
 * - `marks:<block>` ZSETs of numbers by mark: all items whose numbers are in the block. `blocks` ZSET of blocks by number; `firsts` ZSET of
 *   blocks, score = no more than the lowest mark in it. `busy` ZSET of numbers by mark: all items that are not free.
 * - `gone` HASH number -> why it is retired. `ends` ZSET of items whose life has an end, by that.
 * - `requests` HASH request -> numbers of the items that it got and that are still held.
 * - `holder:<holder>` SET of numbers of what it holds, and of `=<request>` of its places in line.
 * - `line:<where>`, `waiting` ZSETs of those who wait with equal `where`, of all, by first asking; `patience` ZSET by when they are
 *   forgotten; `waiters` HASH request -> who waits for what.
 * - `joint:<n>` ZSETs, only within a script. `refills` HASH where -> JSON; `left` ZSET of the same by when each was left last.
 */
export interface PoolKeys {
  /** `{<p>pool:<name>}:`, what all names of the pool begin with. */
  base: string;
  /** Channel: something may be free, or the line has moved. */
  hint: string;
  refills: string;
  left: string;
}

export interface FleetKeys {
  /** HASH: fleet id, schema version, revision, last fencing token. */
  meta: string;
  /** HASH worker id -> what it said of itself (JSON). */
  workers: string;
  /** HASH worker id -> `<generation>|<last seen>|<expires at>|<incarnation>`. */
  beats: string;
  /** HASH worker id -> manifests (JSON). */
  manifests: string;
  /** HASH worker id -> status of its slots (JSON). */
  observed: string;
  /** HASH automation -> `<generation>|<JSON>`. */
  desired: string;
  /** STRING: all assignments (JSON). */
  assignments: string;
  /** HASH `<automation>/<slot>` -> `<worker id>|<incarnation>|<token>|<expires at>`. */
  leases: string;
  /** STRING `<candidate>|<token>|<expires at>`. */
  leader: string;
  /** HASH `<automation> <holder>` -> store time at which its turn to move slots ends. */
  turns: string;
  /** HASH `<kind> <worker id>` -> what is asked of it (JSON). */
  wishes: string;
  /** HASH `<automation>/<slot>` -> a slot's durable value (JSON). */
  state: string;
  health: string;
  /** SET of the names of all declared streams. */
  streams: string;
  /** SET of the names of all declared queues. */
  queues: string;
  /** SET of the names of all declared pools. */
  pools: string;
  /** SET of the names of all locks, counters and rate limits that were ever used. */
  locks: string;
  counters: string;
  limits: string;
  /** Channel: the revision has grown. */
  hint: string;
}

/** Observed use. */
export interface EdgeKeys {
  /** HASH `<direction> <name> <kind and name of the user>` -> counts; see `edge-observe.lua`. */
  counts: string;
  /** ZSET of the same by when they were seen last. */
  seen: string;
}

export interface Keys {
  stream(name: string): StreamKeys;
  queue(name: string): QueueKeys;
  pool(name: string): PoolKeys;
  lock(name: string): LockKeys;
  /** HASH key -> value; `…:keys` ZSET of the keys; `…:op:<producer>` STRING `<seq> <outcome> <value> <before>` of its last operation. */
  counter(name: string): string;
  /** HASH key -> state, see `limit.lua`; `…:free` ZSET of the keys by when they are free again; `…:r:<request>` STRING, a grant's time. */
  limit(name: string): string;
  fleet: FleetKeys;
  /** ZSET of an automation's changes of config, `<at>|<JSON>` by generation; one of the registry's keys. */
  configs(automation: string): string;
  edges: EdgeKeys;
  /** HASH topic -> last seq; one for all topics, so that those that match a pattern are found. */
  eventSeqs: string;
  /** ZSET: member = topic, score = store time of its last event. */
  eventTimes: string;
  /** Channel of a topic, or pattern of channels for a topic pattern. */
  event(topic: string): string;
  /** Patterns that together find every key of this namespace, and possibly keys of others: filter with `owns`. */
  scanPatterns: readonly string[];
  /** Whether a key is one of this namespace's, by exact grammar. */
  owns(key: string): boolean;
}

const NAME = "[a-z0-9][a-z0-9._-]*";
const TAGGED = `(?:stream|queue|pool|lock|counter|limit):${NAME}|edges|events|fleet`;

export function redisKeys(namespace: string): Keys {
  checkNamespace(namespace);
  const p = namespace === "" ? "" : `${namespace}:`;
  const prefix = p.replaceAll(".", "\\.");
  const own = new RegExp(`^(?:${prefix}stream:${NAME}|\\{${prefix}(?:${TAGGED})\\}(?::.*)?)$`, "s");
  const fleet = (part: string) => `{${p}fleet}:${part}`;
  return {
    stream: (name) => {
      const stream = `${p}stream:${name}`;
      return {
        stream,
        meta: `{${stream}}:meta`,
        quarantine: `{${stream}}:quarantine`,
        hint: `{${stream}}:hint`,
      };
    },
    queue: (name) => {
      const base = `{${p}queue:${name}}:`;
      return {
        base,
        hint: `${base}hint`,
        finished: `${base}finished`,
        hand: (holder) => `${base}hand:${holder}`,
      };
    },
    lock: (name) => ({ base: `{${p}lock:${name}}:`, hint: `{${p}lock:${name}}:hint` }),
    counter: (name) => `{${p}counter:${name}}`,
    limit: (name) => `{${p}limit:${name}}`,
    pool: (name) => {
      const base = `{${p}pool:${name}}:`;
      return { base, hint: `${base}hint`, refills: `${base}refills`, left: `${base}left` };
    },
    configs: (automation) => fleet(`config:${automation}`),
    fleet: {
      meta: fleet("meta"),
      workers: fleet("workers"),
      beats: fleet("beats"),
      manifests: fleet("manifests"),
      observed: fleet("observed"),
      desired: fleet("desired"),
      assignments: fleet("assignments"),
      leases: fleet("leases"),
      leader: fleet("leader"),
      turns: fleet("turns"),
      wishes: fleet("wishes"),
      state: fleet("state"),
      health: fleet("health"),
      streams: fleet("streams"),
      queues: fleet("queues"),
      pools: fleet("pools"),
      locks: fleet("locks"),
      counters: fleet("counters"),
      limits: fleet("limits"),
      hint: fleet("hint"),
    },
    edges: { counts: `{${p}edges}:counts`, seen: `{${p}edges}:seen` },
    eventSeqs: `{${p}events}:seq`,
    eventTimes: `{${p}events}:times`,
    event: (topic) => `${p}event:${topic}`,
    scanPatterns: [`${p}stream:*`, `{${p}*`],
    owns: (key) => own.test(key),
  };
}
