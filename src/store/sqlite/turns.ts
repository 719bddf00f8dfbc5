import type { Registry } from "../store.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./database.ts";
import type { Writer } from "./writer.ts";

const HELD = "SELECT 1 FROM turns WHERE ns = ? AND automation = ? AND holder = ? AND expires_at > ?";
const OTHERS =
  "SELECT count(*) FROM turns WHERE ns = ? AND automation = ? AND holder <> ? AND expires_at > ?";
const CLEAR = "DELETE FROM turns WHERE ns = ? AND expires_at <= ?";
const PUT = "INSERT OR REPLACE INTO turns (ns, automation, holder, expires_at) VALUES (?, ?, ?, ?)";
const DROP = "DELETE FROM turns WHERE ns = ? AND automation = ? AND holder = ?";

/** Turns to move slots of an automation: several small leases, of which each holder has at most one. */
export function createTurns(parts: {
  db: Database;
  ns: string;
  clock: Clock;
  writer: Writer;
}): Pick<Registry, "takeTurn" | "endTurn"> {
  const { db, ns, clock, writer } = parts;

  function isFull({ automation, holder, most }: Parameters<Registry["takeTurn"]>[0], now: number): boolean {
    if (db.sql(HELD).get(ns, automation, holder, now) !== undefined) return false;
    return (db.sql(OTHERS).get<[number]>(ns, automation, holder, now)?.[0] ?? 0) >= most;
  }

  return {
    takeTurn(args) {
      return writer.write<"taken" | "full">(
        () => {
          const now = clock();
          if (isFull(args, now)) return "full";
          db.sql(CLEAR).run(ns, now);
          db.sql(PUT).run(ns, args.automation, args.holder, now + args.ttlMs);
          return "taken";
        },
        // Whoever waits for its turn asks again and again: that takes no lock.
        { shortcut: () => (isFull(args, clock()) ? "full" : undefined) },
      );
    },

    endTurn({ automation, holder }) {
      return writer.write(() => void db.sql(DROP).run(ns, automation, holder));
    },
  };
}
