import type { Cordon, DrainWish, WorkerRecord, WorkerWish } from "../protocol/status.ts";
import { cordonWish, drainWish } from "./records.ts";

/** What is asked of workers, by `<kind> <worker id>`. */
export type Wishes = ReadonlyMap<string, Cordon | DrainWish>;

/** One as kept (JSON), by its name. */
export function readWish(text: string, name: string): Cordon | DrainWish {
  if (name.startsWith("cordon ")) return cordonWish(text);
  if (name.startsWith("drain ")) return drainWish(text);
  throw new Error("its key names no wish");
}

/** A worker's record with what is asked of it; a drain that was meant for an earlier incarnation is nobody's any more. */
export function withWish(record: WorkerRecord, wishes: Wishes): WorkerRecord {
  const wish: WorkerWish = {};
  const cordon = wishes.get(`cordon ${record.id}`);
  const drain = wishes.get(`drain ${record.id}`) as DrainWish | undefined;
  if (cordon !== undefined) wish.cordon = cordon;
  if (drain !== undefined && drain.incarnation === record.incarnation) wish.drain = drain;
  return Object.keys(wish).length === 0 ? record : { ...record, wish };
}
