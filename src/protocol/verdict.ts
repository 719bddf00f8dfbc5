// How payloads are judged by those who know what a JSON Schema cannot say: user code, in a child of a live worker.
import type { PayloadIssue } from "../errors.ts";

/** Most bytes of payloads of one question, and of one answer: each travels as an event. */
export const MAX_VERDICT_BYTES = 48 * 1024;

/** What does not fit about one payload; empty where there was no room to say so, null where it fits. */
export type Verdict = readonly PayloadIssue[] | null;

/** Published on `ASK_PREFIX` and the incarnation of a worker that runs a slot of this automation. */
export type VerdictQuestion = {
  id: string;
  automation: string;
  /** Topic on which the answer is awaited. */
  reply: string;
} & Judged;

/** What is judged: payloads of tasks of the automation itself, or items of a pool whose use it declares. */
export type Judged =
  | { payloads: readonly unknown[]; items?: undefined }
  | { pool: string; items: readonly JudgedItem[]; payloads?: undefined };

/** An item as it is to be put; its verdict bears pointers below `/payload` and `/tags`. */
export interface JudgedItem {
  payload: unknown;
  /** Left out where none were given. */
  tags?: unknown;
}

export interface VerdictAnswer {
  id: string;
  /** In the order of the payloads; null where no child could be asked. */
  verdicts: readonly Verdict[] | null;
}
