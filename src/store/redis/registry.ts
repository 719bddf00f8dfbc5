import { byName } from "../../internal/by-name.ts";
import { FleetError } from "../../errors.ts";
import { CONFIG_HISTORY, type ConfigVersion, versionOf } from "../../protocol/config.ts";
import { slotKey } from "../../protocol/spec.ts";
import { configVersion, slotHealth, slotName } from "../records.ts";
import { readManifests } from "../read-manifests.ts";
import type { HeldLease, Registry } from "../store.ts";
import { holderOf } from "../taken.ts";
import { type ViewReply, viewOf } from "./fleet-view.ts";
import { pairs, type RedisParts } from "./parts.ts";
import { hashPlace, scoredPlace } from "./places.ts";

export function redisRegistry({ link, run, keys, identity, subscriber, book }: RedisParts): Registry {
  const {
    meta,
    workers,
    beats,
    manifests,
    observed,
    desired,
    assignments,
    leases,
    leader,
    turns,
    wishes,
    state,
    health,
    hint,
  } = keys.fleet;
  /** Where a script announces that the revision has grown, and as which fleet. */
  const announce = () => ({ hint, fleet: identity.id });

  return {
    async register({ worker, manifests: published, ttlMs, replaces = "", generation = 0 }) {
      checkIncarnation(worker.incarnation);
      const reply = await run<RegisterReply>("fleet-register", {
        keys: { meta, workers, beats, manifests, observed, leases },
        args: {
          ...announce(),
          id: worker.id,
          incarnation: worker.incarnation,
          info: JSON.stringify(worker),
          manifests: JSON.stringify(published),
          ttlMs: String(ttlMs),
          replaces,
          generation: String(generation),
        },
        repeatable: true,
      });
      if (reply[0] === "registered")
        return { outcome: reply[0], generation: reply[1], now: Number(reply[2]) };
      return { outcome: reply[0], by: holderOf(reply[1], worker.id), lastSeenAt: Number(reply[2]) };
    },

    async beat({ workerId, incarnation, ttlMs, leaseMs, leases: held, slots }) {
      const [outcome, now, revision, ...lost] = await run<(string | number)[]>("fleet-beat", {
        keys: { meta, beats, leases, observed },
        args: {
          ...announce(),
          id: workerId,
          incarnation,
          ttlMs: String(ttlMs),
          leaseMs: String(leaseMs),
          slots: slots === undefined ? "" : JSON.stringify(slots),
        },
        rest: held.flatMap((lease) => [slotKey(lease), lease.token]),
        repeatable: true,
      });
      if (outcome === "ok") {
        return {
          outcome,
          now: Number(now),
          revision: Number(revision),
          lost: lost.map((index) => held[Number(index)] as HeldLease),
        };
      }
      // A worker that was known is not: the store may have come back empty, and then the fleet's id is gone as well.
      void identity.reseed();
      return { outcome: "unknown" };
    },

    async deregister({ workerId, incarnation }) {
      await run("fleet-deregister", {
        keys: { meta, beats, leases, observed },
        args: { ...announce(), id: workerId, incarnation },
        repeatable: true,
      });
    },

    async pruneWorkers({ offlineMs }) {
      const removed = await run<number>("fleet-prune-workers", {
        keys: { meta, workers, beats, manifests, observed, wishes, leases },
        args: { ...announce(), offlineMs: String(offlineMs) },
        repeatable: true,
      });
      return { removed };
    },

    async removeWorker({ workerId }) {
      return run<"removed" | "alive" | "unknown">("fleet-remove-worker", {
        keys: { meta, workers, beats, manifests, observed, wishes },
        args: { ...announce(), id: workerId },
        // A repeat of one that was carried out would find nothing.
        repeatable: false,
      });
    },

    async setWish({ workerId, kind, wish }) {
      return run<"stored" | "unchanged">("fleet-set-wish", {
        keys: { meta, wishes },
        // JSON text is never empty, so "" can mean none.
        args: {
          ...announce(),
          field: `${kind} ${workerId}`,
          json: wish === null ? "" : JSON.stringify(wish),
        },
        repeatable: true,
      });
    },

    async claimSlots({ workerId, incarnation, leaseMs, slots }) {
      if (slots.length === 0) return [];
      checkIncarnation(incarnation);
      const tokens = await run<string[]>("fleet-claim-slots", {
        keys: { meta, leases },
        args: { id: workerId, incarnation, leaseMs: String(leaseMs) },
        rest: slots.map(slotKey),
        // A repeat would find the slots taken, by itself, and not answer the tokens.
        repeatable: false,
      });
      return slots
        .map(({ automation, slotId }, i): HeldLease => ({ automation, slotId, token: tokens[i] as string }))
        .filter((lease) => lease.token !== "");
    },

    async releaseSlots({ leases: held }) {
      if (held.length === 0) return;
      await run("fleet-release-slots", {
        keys: { leases },
        rest: held.flatMap((lease) => [slotKey(lease), lease.token]),
        repeatable: true,
      });
    },

    async view() {
      const reply = await run<ViewReply>("fleet-view", {
        keys: { meta, workers, beats, observed, desired, assignments, leases, leader, wishes },
        repeatable: true,
      });
      return viewOf(reply, keys.fleet, book);
    },

    async revision() {
      return Number(await link.call(["HGET", meta, "revision"], { repeatable: true, key: meta }));
    },

    async manifests() {
      const found = await link.call(["HGETALL", manifests], { repeatable: true, key: manifests });
      return readManifests(book, hashPlace("manifest", manifests), Object.entries(found as object));
    },

    async putDesired({ name, desired: wanted, expected, record }) {
      return run<"stored" | "conflict">("fleet-put-desired", {
        keys: { meta, desired, configs: keys.configs(name) },
        args: {
          ...announce(),
          name,
          expected: String(expected),
          generation: String(wanted.generation),
          json: JSON.stringify(wanted),
          version: record === undefined ? "" : JSON.stringify({ ...versionOf(wanted), ...record }),
          keep: String(CONFIG_HISTORY),
        },
        repeatable: true,
      });
    },

    async configHistory({ name, limit, before }) {
      const key = keys.configs(name);
      const from = before === undefined ? "+inf" : `(${before}`;
      const found = await link.call(
        ["ZRANGE", key, from, "-inf", "BYSCORE", "REV", "LIMIT", "0", String(limit), "WITHSCORES"],
        { repeatable: true, key },
      );
      const versions = pairs((found as unknown[]).flat().map(String)).map(
        ([text, score]) => [score, text] as const,
      );
      const { good } = book.look(scoredPlace("config version", key, name), versions, versionOfText);
      return good.map(([, version]) => version);
    },

    async lead({ candidate, leaseMs, rank = 0 }) {
      const [leading, token, holder] = await run<[number, string, string]>("fleet-lead", {
        keys: { meta, leader },
        args: { candidate, leaseMs: String(leaseMs), rank: String(rank) },
        repeatable: true,
      });
      return { leading: leading === 1, token, leader: holder };
    },

    async resign({ candidate }) {
      await run("fleet-resign", { keys: { leader }, args: { candidate }, repeatable: true });
    },

    async putAssignments({ assignments: wanted, token }) {
      return run<"stored" | "not-leader">("fleet-put-assignments", {
        keys: { meta, leader, assignments },
        args: { ...announce(), token, json: JSON.stringify(wanted) },
        repeatable: true,
      });
    },

    async takeTurn({ automation, holder, most, ttlMs }) {
      return run<"taken" | "full">("fleet-take-turn", {
        keys: { turns },
        args: { automation, holder, most: String(most), ttlMs: String(ttlMs) },
        repeatable: true,
      });
    },

    async endTurn({ automation, holder }) {
      await link.call(["HDEL", turns, `${automation} ${holder}`], { repeatable: true, key: turns });
    },

    async getState(slot) {
      const value = await link.call(["HGET", state, slotKey(slot)], { repeatable: true, key: state });
      return (value as string | null) ?? undefined;
    },

    async setState({ token, value, ...slot }) {
      return run<"stored" | "lease-lost">("fleet-set-state", {
        keys: { leases, state },
        // JSON text is never empty, so "" can mean none.
        args: { slot: slotKey(slot), token, value: value ?? "" },
        repeatable: true,
      });
    },

    async slotHealth() {
      const found = await link.call(["HGETALL", health], { repeatable: true, key: health });
      const place = hashPlace("health", health);
      const kept = Object.entries(found as Record<string, string>);
      return byName(book.look(place, kept, (text, slot) => slotName(slot) && slotHealth(text)).good);
    },

    async setSlotHealth({ automation, slotId, token, health: value }) {
      return run<"stored" | "lease-lost">("fleet-set-state", {
        keys: { leases, state: health },
        args: { slot: slotKey({ automation, slotId }), token, value: JSON.stringify(value) },
        repeatable: true,
      });
    },

    watch(onHint) {
      return subscriber.listen("channel", hint, {
        onMessage: (fleet) => {
          if (fleet === identity.id) onHint();
        },
        onRestored: onHint,
      });
    },
  };
}

function versionOfText(text: string): ConfigVersion {
  const [, at, json] = /^(\d+)\|(.*)$/s.exec(text) ?? [];
  if (json === undefined) throw new Error("it is not <at>|<JSON>");
  return { ...configVersion(json), at: Number(at) };
}

type RegisterReply = ["registered", generation: number, now: string] | ["taken", info: string, seen: string];

/** It stands between bars in the values of leases. */
function checkIncarnation(incarnation: string): void {
  if (incarnation !== "" && !incarnation.includes("|")) return;
  throw new FleetError(
    "FLEET_OPTION_INVALID",
    `incarnation: ${JSON.stringify(incarnation)} is empty or has a "|" in it`,
  );
}
