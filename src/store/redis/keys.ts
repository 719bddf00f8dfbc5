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
 * - `meta` HASH: settings; `seq`, `turn`, `token`, the last of each; `n:<total>` and `r:<reason>`, what only grows.
 * - `task:<id>` HASH: **p**ayload; fixed **v**alues `<flag> <priority> <maxAttempts> <timeoutMs> <ttlMs> <submitted at>`; **s**tate `s`cheduled,
 *   `w`aiting, `a`ctive, `c`ompleted, `f`ailed, `x` cancelled; its place (`o`) in its lane. Where they differ from none: lane (`k`), due
 *   (`u`), **e**xpires, **d**edupe key, asked for (`q`), tick (`j`) `<at> <schedule>`, counters (`g`) `<attempts> <crashes> <interruptions>`,
 *   **h**older `<flag><holder>` and start (`b`) `<at> <worker>` of the last claim, **t**oken of the last claim that was settled, finish (`f`),
 *   **r**esult, reason (`x`), error (`m`). The flag is 1 where there is more to look at when it is claimed or ends: `e`, `d`, `q`, `j`;
 *   the holder's also for `k`.
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
  /** HASH `<automation>/<slot>` -> a slot's durable value (JSON). */
  state: string;
  health: string;
  /** SET of the names of all declared streams. */
  streams: string;
  /** SET of the names of all declared queues. */
  queues: string;
  /** Channel: the revision has grown. */
  hint: string;
}

export interface Keys {
  stream(name: string): StreamKeys;
  queue(name: string): QueueKeys;
  fleet: FleetKeys;
  /** HASH topic -> last seq; one for all topics, so that baselines are read at once. */
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
const TAGGED = `(?:stream|queue|pool|lock|counter|limit):${NAME}|events|fleet`;

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
      state: fleet("state"),
      health: fleet("health"),
      streams: fleet("streams"),
      queues: fleet("queues"),
      hint: fleet("hint"),
    },
    eventSeqs: `{${p}events}:seq`,
    eventTimes: `{${p}events}:times`,
    event: (topic) => `${p}event:${topic}`,
    scanPatterns: [`${p}stream:*`, `{${p}*`],
    owns: (key) => own.test(key),
  };
}
