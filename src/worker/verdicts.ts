import { isName } from "../contracts/name.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { after, type Timer } from "../internal/timers.ts";
import { ANSWER_PREFIX, ASK_PREFIX } from "../protocol/event.ts";
import type { ToHost } from "../protocol/host.ts";
import type { Judged, VerdictAnswer, VerdictQuestion } from "../protocol/verdict.ts";
import type { EventStore } from "../store/store.ts";
import type { Watch } from "../store/watch.ts";

/** Most questions that wait for children at once; others are answered at once that nobody could be asked. */
const MOST = 64;
/** After so long nobody waits for an answer any more. */
const PATIENCE_MS = 2000;

export interface VerdictDeskParts {
  events: EventStore;
  worker: { id: string; incarnation: string };
  /** A process that runs slots of this automation and gives signs of life; undefined where there is none. */
  hostOf: (automation: string) => { tell(message: ToHost): void } | undefined;
  log: Log;
}

/**
 * Takes questions about payloads to a child of the automation and its verdicts back. Nothing waits for a child here: one that is busy answers
 * late or never, and whoever asked goes by what the JSON Schema says.
 */
export class VerdictDesk {
  readonly #parts: VerdictDeskParts;
  readonly #open = new Map<string, { reply: string; timer: Timer }>();
  #watch: Watch | undefined;

  constructor(parts: VerdictDeskParts) {
    this.#parts = parts;
  }

  start(): void {
    const pattern = ASK_PREFIX + this.#parts.worker.incarnation;
    this.#watch ??= this.#parts.events.subscribe({ pattern }, ({ payload }) => this.#asked(payload));
    this.#watch.ready.catch(() => undefined);
  }

  async stop(): Promise<void> {
    for (const { timer } of this.#open.values()) timer.cancel();
    this.#open.clear();
    await this.#watch?.close();
  }

  /** What a child has answered. */
  hear({ id, verdicts }: VerdictAnswer): void {
    const asked = this.#open.get(id);
    // Too late, or said twice.
    if (asked === undefined) return;
    asked.timer.cancel();
    this.#open.delete(id);
    this.#answer(asked.reply, { id, verdicts });
  }

  #asked(payload: unknown): void {
    if (!isQuestion(payload)) return;
    const { id, automation, reply } = payload;
    const host = this.#open.size < MOST ? this.#parts.hostOf(automation) : undefined;
    if (host === undefined) return this.#answer(reply, { id, verdicts: null });
    const timer = after(PATIENCE_MS, () => this.#open.delete(id), { unref: true });
    this.#open.set(id, { reply, timer });
    host.tell({ type: "judge", id, ...judgedOf(payload) });
  }

  #answer(topic: string, answer: VerdictAnswer): void {
    const { events, worker, log } = this.#parts;
    events
      .publish({ topic, source: worker.id, payload: JSON.stringify(answer) })
      .catch((error: unknown) => log.debug("a verdict was not published", { error: messageOf(error) }));
  }
}

function judgedOf(question: VerdictQuestion): Judged {
  if (question.payloads !== undefined) return { payloads: question.payloads };
  return { pool: question.pool, items: question.items };
}

function isQuestion(value: unknown): value is VerdictQuestion {
  const { id, automation, reply, payloads, items, pool } = (value ?? {}) as Record<string, unknown>;
  return (
    typeof id === "string" &&
    id.length <= 64 &&
    typeof automation === "string" &&
    isName(reply) &&
    reply.startsWith(ANSWER_PREFIX) &&
    (Array.isArray(payloads) || (isName(pool) && Array.isArray(items) && items.every(isItem)))
  );
}

function isItem(value: unknown): boolean {
  return typeof value === "object" && value !== null && "payload" in value;
}
