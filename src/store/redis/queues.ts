import { canonicalJson } from "../../internal/canonical.ts";
import type { TaskRecord } from "../../protocol/task.ts";
import type { QueueStore } from "../queue-store.ts";
import { ofId } from "../records.ts";
import type { QueueKeys } from "./keys.ts";
import { enterName } from "./name-index.ts";
import { pairs, type RedisParts } from "./parts.ts";
import { hashPlace } from "./places.ts";
import {
  cursorOf,
  PAGES,
  placeOf,
  recordOf,
  type RecordReply,
  scheduleOf,
  statsOf,
  type StatsReply,
} from "./queue-records.ts";
import {
  claimedOf,
  type ClaimReply,
  handedOf,
  type ListReply,
  resultOf,
  settingsOf,
  wireOfLists,
  wireOfSettings,
  wireOfSettlements,
} from "./queue-wire.ts";
import type { Subscription } from "./subscriber.ts";

/** How far apart the bands of a lane are; see `queue-lanes.lua`. */
const BAND = String(2 ** 41);

export function redisQueues({ link, run, keys, identity, subscriber, book }: RedisParts): QueueStore {
  // The names of a queue are asked for with every call: made once.
  const known = new Map<string, QueueKeys>();
  const keysOf = (name: string): QueueKeys => {
    let found = known.get(name);
    if (found === undefined) known.set(name, (found = keys.queue(name)));
    return found;
  };
  /** No settings where there were some: the store may have come back empty, and then the fleet's id is gone as well. */
  const notice = (declared: "" | "undeclared") => {
    if (declared === "undeclared") void identity.reseed();
  };
  const call = <T>(
    script: Parameters<typeof run>[0],
    queue: string,
    args: Record<string, string> = {},
    rest: readonly string[] = [],
    repeatable = true,
  ) =>
    run<T>(script, {
      keys: { base: keysOf(queue).base },
      args: { fleet: identity.id, ...args },
      rest,
      repeatable,
    });

  const read = async (queue: string, id: string, ask: boolean): Promise<TaskRecord | undefined> => {
    const reply = await call<RecordReply | null>("queue-get", queue, { id, ask: ask ? "1" : "0" });
    return reply === null ? undefined : recordOf(queue, reply);
  };

  return {
    async declare({ queue, settings, as }) {
      // The index lies on another node of a cluster, so this takes two steps. First the index: it may name too much, never too little.
      await enterName(run, keys.fleet.queues, queue);
      return settingsOf(await call<string[]>("queue-declare", queue, { role: as }, wireOfSettings(settings)));
    },

    async list() {
      const key = keys.fleet.queues;
      const names = (await link.call(["SMEMBERS", key], { repeatable: true, key })) as string[];
      return names.toSorted();
    },

    async submit({ queue, lists }) {
      const { common, sent } = wireOfLists(lists);
      const reply = await call<ListReply[] | "undeclared">("queue-submit", queue, { common }, sent);
      if (reply === "undeclared") {
        notice(reply);
        return { outcome: "undeclared" };
      }
      return { outcome: "done", lists: reply.map((one, i) => resultOf(one, lists[i] ?? [])) };
    },

    async turn({ queue, holder, worker, leaseMs, settle, claim, idle = false }) {
      const [declared, lost, tasks, now, ready, due] = await call<TurnReply>(
        "queue-turn",
        queue,
        {
          holder,
          worker,
          leaseMs: String(Math.round(leaseMs)),
          claim: String(Math.max(0, claim)),
          // On a cluster a script cannot tell whether somebody on another node would receive what it hands out.
          idle: idle && !link.target.cluster ? "1" : "0",
        },
        wireOfSettlements(settle),
        // A repeat would claim more.
        claim <= 0,
      );
      notice(declared);
      const settled = settle.map((): "settled" | "lease-lost" => "settled");
      for (const index of lost) settled[index] = "lease-lost";
      return { settled, tasks: tasks.map(claimedOf), now: Number(now), ready, nextDueAt: dueOf(due) };
    },

    async keep({ queue, holders, leaseMs, idle = holders }) {
      const [declared, at, ready, due, held] = await call<KeepReply>(
        "queue-keep",
        queue,
        {
          leaseMs: String(Math.round(leaseMs)),
          idle: holders.map((holder) => (idle.includes(holder) ? "1" : "0")).join(""),
        },
        holders,
      );
      notice(declared);
      return { held: held.map(heldOf), at, ready, nextDueAt: dueOf(due) };
    },

    async lose({ queue, holders, crashed, error }) {
      const [crashes, interruptions] = await call<[number, number]>(
        "queue-lose",
        queue,
        { error, holders: String(holders.length) },
        [...holders, ...crashed],
      );
      return { crashed: crashes, interrupted: interruptions };
    },

    cancel: ({ queue, ids }) => call("queue-cancel", queue, {}, ids),
    retry: ({ queue, ids }) => call("queue-retry", queue, {}, ids),
    get: ({ queue, id }) => read(queue, id, false),
    ask: ({ queue, id }) => read(queue, id, true),
    ended: ({ queue, ids }) => call("queue-ended", queue, {}, ids),

    async page({ queue, state, n, cursor }) {
      const { sets, order } = PAGES[state];
      let place = placeOf(cursor, sets);
      const tasks: TaskRecord[] = [];
      if (n <= 0) return { tasks };
      for (;;) {
        const { set, score, id } = place;
        const args = { set: sets[set] as string, n: String(n - tasks.length), order, score, id };
        const [found, last, more] = await call<PageReply>("queue-page", queue, args);
        tasks.push(...found.map((reply) => recordOf(queue, reply)));
        if (more === 1) return { tasks, next: cursorOf({ set, score: last, id: tasks.at(-1)?.id ?? "" }) };
        if (set + 1 >= sets.length) return { tasks };
        place = { set: set + 1, score: "", id: "" };
        if (tasks.length >= n) return { tasks, next: cursorOf(place) };
      }
    },

    async stats({ queue }) {
      const reply = await call<StatsReply>("queue-stats", queue, { band: BAND });
      return reply.length === 0 ? undefined : statsOf(reply);
    },

    async sweep({ queue }) {
      const [reclaimed, expired, forgotten, more] = await call<[number, number, number, number]>(
        "queue-sweep",
        queue,
      );
      return { reclaimed, expired, forgotten, more: more === 1 };
    },

    async putSchedule({ queue, spec }) {
      const args = { id: spec.id, timing: canonicalJson(spec.timing), spec: canonicalJson(spec) };
      return scheduleOf(await call<string>("queue-put-schedule", queue, args));
    },

    removeSchedule: ({ queue, id, revision }) =>
      call("queue-remove-schedule", queue, { id, revision: String(revision ?? "") }),

    pauseSchedule: ({ queue, id, paused }) =>
      call("queue-pause-schedule", queue, { id, paused: paused ? "1" : "0" }),

    async schedules({ queue }) {
      const [now, flat] = await call<[string, string[]]>("queue-schedules", queue);
      const place = hashPlace("schedule", `${keys.queue(queue).base}schedules`, queue);
      const { good } = book.look(place, pairs(flat), (stored, id) => ofId(scheduleOf(stored), id));
      return { now: Number(now), schedules: good.map(([, record]) => record) };
    },

    async ticked({ queue, id, tick, revision }) {
      await call("queue-ticked", queue, { id, tick: String(tick), revision: String(revision) });
    },

    watch({ queue, taker }, { onReady, onFinished, onTasks }) {
      const { hint, finished, hand } = keysOf(queue);
      const own = (text: string) => text.startsWith(identity.id);
      const watches: Subscription[] = [];
      if (onReady !== undefined)
        watches.push(
          subscriber.listen("channel", hint, {
            onMessage: (fleet) => {
              if (own(fleet)) onReady();
            },
            onRestored: onReady,
          }),
        );
      if (onFinished !== undefined)
        watches.push(
          subscriber.listen("channel", finished, {
            onMessage: (text) => {
              if (own(text)) onFinished(text.slice(identity.id.length + 1));
            },
          }),
        );
      if (onTasks !== undefined && taker !== undefined && !link.target.cluster)
        watches.push(
          subscriber.listen("channel", hand(taker), {
            onMessage: (text) => {
              if (own(text)) onTasks(handedOf(text.slice(identity.id.length + 1)));
            },
          }),
        );
      const ready = Promise.all(watches.map((watch) => watch.ready)).then(() => undefined);
      ready.catch(() => undefined);
      return {
        ready,
        close: async () => {
          await Promise.all(watches.map((watch) => watch.close()));
        },
      };
    },
  };
}

type TurnReply = [
  "" | "undeclared",
  lost: number[],
  tasks: ClaimReply[],
  now: string,
  ready: number,
  due: string,
];
type PageReply = [tasks: RecordReply[], last: string, more: number];
type KeepReply = ["" | "undeclared", at: string, ready: number, due: string, held: HeldReply[]];
type HeldReply = [ids: string[], tokens: string[], cancelling: string[]];

function heldOf([ids, tokens, cancelling]: HeldReply) {
  const marked = new Set(cancelling);
  return ids
    .map((id, i) => ({ id, token: tokens[i] as string, cancelling: marked.has(id) }))
    .toSorted((a, b) => Number(a.token) - Number(b.token));
}

function dueOf(text: string): number | null {
  return text === "" ? null : Number(text);
}
