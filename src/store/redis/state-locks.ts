import type { AcquireResult, LockRecord, LockStore } from "../state-store.ts";
import { nameIndex } from "./name-index.ts";
import { pairs, type RedisParts } from "./parts.ts";

export function redisLocks({ link, run, keys, identity, subscriber }: RedisParts): LockStore {
  const index = nameIndex(link, run, keys.fleet.locks);
  const call = <T>(
    script: Parameters<typeof run>[0],
    name: string,
    args: Record<string, string> = {},
    rest: readonly string[] = [],
  ) =>
    run<T>(script, {
      keys: { base: keys.lock(name).base },
      args: { fleet: identity.id, ...args },
      rest,
      // Who acquires bears a request, who holds a token: a repeat changes nothing.
      repeatable: true,
    });
  const extend = (name: string, leases: readonly { key: string; token: string; holdMs: number }[]) =>
    call<string[]>(
      "lock-extend",
      name,
      {},
      leases.flatMap(({ key, token, holdMs }) => [key, token, ms(holdMs)]),
    );
  const show = async (name: string, n: number) => {
    const found = await call<string[][]>("lock-show", name, { n: String(n) });
    return found.map(recordOf).toSorted((a, b) => (a.key < b.key ? -1 : 1));
  };

  return {
    async acquire({ name, key, request, holder, by, holdMs, waitFor }) {
      await index.enter(name);
      const patienceMs = waitFor === undefined ? "" : ms(waitFor.patienceMs);
      const reply = await call<AcquireReply>("lock-acquire", name, {
        key,
        request,
        holder,
        by,
        holdMs: ms(holdMs),
        patienceMs,
      });
      if (reply[0] === "granted" && reply[4] === 1) {
        await index.again(name);
        void identity.reseed();
      }
      return resultOf(reply);
    },

    async extend({ name, key, token, holdMs }) {
      const [until] = await extend(name, [{ key, token, holdMs }]);
      return until === undefined || until === ""
        ? { outcome: "lease-lost" }
        : { outcome: "extended", until: Number(until) };
    },

    release: ({ name, key, token }) => call("lock-release", name, { key, token }),

    async leave({ name, key, request }) {
      await call("lock-leave", name, { key, request });
    },

    async keep({ name, leases }) {
      return leases.length === 0 ? [] : (await extend(name, leases)).map((until) => until !== "");
    },

    async lose({ name, holders }) {
      return { released: await call<number>("lock-lose", name, {}, holders) };
    },

    async list() {
      const names = await index.all();
      const shown = await Promise.all(names.map((name) => show(name, 1)));
      return names.filter((_, i) => shown[i]?.length !== 0);
    },

    // As many keys as fit into one answer.
    show: ({ name }) => show(name, 100_000),

    watch({ name }, onHint) {
      return subscriber.listen("channel", keys.lock(name).hint, {
        onMessage: (text) => {
          if (text.startsWith(identity.id)) onHint(text.slice(identity.id.length + 1));
        },
        onRestored: () => onHint(undefined),
      });
    },
  };
}

type AcquireReply =
  | ["granted", token: string, until: string, now: string, fresh: number]
  | ["held", by: string, until: string, position: number | "", now: string];

function resultOf(reply: AcquireReply): AcquireResult {
  const now = Number(reply[3]);
  if (reply[0] === "granted") return { outcome: "granted", token: reply[1], until: Number(reply[2]), now };
  const [, by, until, position, at] = reply;
  return {
    outcome: "held",
    by,
    until: until === "" ? null : Number(until),
    position: position === "" ? null : position,
    now: Number(at),
  };
}

function recordOf([key = "", token = "", until, since, by = "", ...waiting]: string[]): LockRecord {
  return {
    key,
    holder: token === "" ? null : { by, since: Number(since), until: Number(until), token },
    waiting: pairs(waiting).map(([who, from]) => ({ by: who, since: Number(from) })),
  };
}

function ms(length: number): string {
  return String(Math.ceil(length));
}
