/** What a helper process can be asked for: the other end of a measurement that needs two processes. */
export interface HelperCalls {
  /** Consumes the stream of stamps, waiting when it is empty, and notes how old each payload is once it is in its hands. */
  consumeStamps(args: { store: string }): void;
  /** Subscribes through Fleet, or with the bare client, and notes how old each event is. */
  subscribeEvents(args: { store: string; topic: string }): void;
  subscribeRaw(args: { redisUrl: string; channel: string }): void;
  /** Subscribes with the bare client and drops what comes. */
  drain(args: { redisUrl: string; channels: string[] }): void;
  /** The ages noted since the last time it was asked, in microseconds. */
  takeAges(args: Record<string, never>): number[];
  /** Paced PINGs on an idle connection, in microseconds. */
  ping(args: { redisUrl: string; count: number; pauseMs: number }): number[];
  /** Pushes into SQLite: one after the other as fast as it goes, or `perSecond` of them on a schedule. */
  pushSqlite(args: { store: string; ms: number; perSecond?: number }): PushLoad;
  /** Runs a BullMQ worker in this process: its handler does nothing, or notes how old each job is. */
  runBull(args: { redisUrl: string; queue: string; concurrency: number; note: boolean }): void;
}

export interface PushLoad {
  perSecond: number;
  /** How long each push took, in milliseconds. */
  tookMs: number[];
  errors: number;
}

export interface HelperRequest {
  id: number;
  call: keyof HelperCalls;
  args: never;
}

export type HelperReply = { id: number; value: unknown } | { id: number; error: string };
