import { messageOf } from "../errors.ts";
import type { Log } from "../internal/log.ts";
import { after, sleep } from "../internal/timers.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { ANSWER_PREFIX, ASK_PREFIX } from "../protocol/event.ts";
import type { Manifest } from "../protocol/manifest.ts";
import { workerState, type WorkerRecord } from "../protocol/status.ts";
import { MAX_VERDICT_BYTES, type Verdict, type VerdictAnswer } from "../protocol/verdict.ts";
import type { FleetView, Store } from "../store/store.ts";
import type { Watch } from "../store/watch.ts";

/** How long an answer is waited for in all. */
const WAIT_MS = 1000;
/** A child that has not answered by then may be busy: another worker is asked too. */
const SECOND_ASK_MS = 400;
/** Most questions of one call; payloads that need more are not judged. */
const MOST_QUESTIONS = 16;

type Verdicts = readonly Verdict[];

/** Whose schema is asked: that of a batch automation's tasks, or that of a pool, as an automation has it that declares its use. */
export type VerdictSubject = { automation: string } | { pool: string };

/** By whom payloads were found to fit: by the schema itself, in a live process, or by the JSON Schema that was published of it. */
export type Validated = "full" | "structural";

/** A live process to ask: of which worker, and of which automation. */
interface Runner {
  incarnation: string;
  automation: string;
}

/**
 * Asks a live child of an automation what its own schema says to payloads: refinements do not survive in JSON Schema. One subscription for
 * all answers, made when it is first needed.
 */
export class VerdictAsker {
  readonly #store: Store;
  readonly #log: Log;
  readonly #id = uuidv7();
  readonly #waiting = new Map<string, (verdicts: Verdicts | null) => void>();
  #ear: Watch | undefined;
  #asked = 0;

  constructor(store: Store, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  /**
   * Per payload what does not fit, or null. Undefined where nobody could be asked or answered in time (about a second), or where the payloads
   * are too large for that: one of more than 48 KiB as JSON, or all together of more than about 768 KiB. `texts` are JSON: payloads of tasks,
   * or a pool's items as `{"payload":…,"tags":…}`.
   */
  async ask(
    subject: VerdictSubject,
    texts: readonly string[],
    signal?: AbortSignal,
  ): Promise<Verdicts | undefined> {
    const groups = groupsOf(texts);
    if (groups === undefined) return undefined;
    const over = new AbortController();
    const end = () => over.abort();
    const timer = after(WAIT_MS, end);
    signal?.addEventListener("abort", end, { once: true });
    try {
      const runners = await this.#runners(subject);
      if (runners.length === 0) return undefined;
      // Not always the same one.
      const first = this.#asked++ % runners.length;
      const order = [...runners.slice(first), ...runners.slice(0, first)].slice(0, 2);
      if (!(await this.#listen(over.signal))) return undefined;
      const answers = await Promise.all(
        groups.map((group) => this.#question(subject, group, order, over.signal)),
      );
      // An answer to something else is none.
      const whole = answers.every((answer, at) => answer?.length === groups[at]?.length);
      return whole ? answers.flatMap((answer) => answer ?? []) : undefined;
    } catch (error) {
      this.#log.debug("payloads were not judged", { ...subject, error: messageOf(error) });
      return undefined;
    } finally {
      timer.cancel();
      signal?.removeEventListener("abort", end);
      over.abort();
    }
  }

  async close(): Promise<void> {
    for (const settle of this.#waiting.values()) settle(null);
    await this.#ear?.close();
  }

  async #runners(subject: VerdictSubject): Promise<Runner[]> {
    const { registry } = this.#store;
    if ("automation" in subject) return runnersOf(await registry.view(), () => [subject.automation]);
    const [view, manifests] = await Promise.all([registry.view(), registry.manifests()]);
    return runnersOf(view, ({ id }) =>
      (manifests[id] ?? []).filter((one) => usesPool(one, subject.pool)).map(({ name }) => name),
    );
  }

  /** False where nothing is received in time. */
  async #listen(signal: AbortSignal): Promise<boolean> {
    this.#ear ??= this.#store.events.subscribe({ pattern: ANSWER_PREFIX + this.#id }, ({ payload }) => {
      const { id, verdicts } = (payload ?? {}) as Partial<VerdictAnswer>;
      if (typeof id !== "string") return;
      this.#waiting.get(id)?.(Array.isArray(verdicts) ? (verdicts as Verdicts) : null);
    });
    const ear = this.#ear;
    const ready = ear.ready.then(
      () => true,
      () => {
        if (this.#ear === ear) this.#ear = undefined;
        return false;
      },
    );
    return Promise.race([ready, aborted(signal).then(() => false)]);
  }

  /** The first answer of any of these workers; undefined where none of them has one. */
  async #question(
    subject: VerdictSubject,
    group: readonly string[],
    runners: readonly Runner[],
    signal: AbortSignal,
  ): Promise<Verdicts | undefined> {
    const [first, second] = runners;
    if (first === undefined) return undefined;
    const answer = this.#askOne(subject, group, first, signal);
    if (second === undefined) return (await answer) ?? undefined;
    const late = new AbortController();
    const hurry = () => late.abort();
    answer.then(hurry, hurry);
    signal.addEventListener("abort", hurry, { once: true });
    await sleep(SECOND_ASK_MS, late.signal);
    signal.removeEventListener("abort", hurry);
    if (signal.aborted) return undefined;
    // Answered by then, or by nobody there: then the other is asked at once.
    const early = late.signal.aborted ? await answer : null;
    if (early !== null) return early;
    return (await firstOf([answer, this.#askOne(subject, group, second, signal)])) ?? undefined;
  }

  async #askOne(
    subject: VerdictSubject,
    group: readonly string[],
    { incarnation, automation }: Runner,
    signal: AbortSignal,
  ): Promise<Verdicts | null> {
    const id = uuidv7();
    const about = JSON.stringify({ ...subject, id, automation, reply: ANSWER_PREFIX + this.#id });
    const what = "pool" in subject ? "items" : "payloads";
    const answered = new Promise<Verdicts | null>((resolve) => this.#waiting.set(id, resolve));
    try {
      await this.#store.events.publish({
        topic: ASK_PREFIX + incarnation,
        source: `asker:${this.#id}`,
        payload: `${about.slice(0, -1)},"${what}":[${group.join(",")}]}`,
      });
      return await Promise.race([answered, aborted(signal).then(() => null)]);
    } finally {
      this.#waiting.delete(id);
    }
  }
}

/** Live workers that hold a slot of one of these automations; first those whose slot is said to run. */
function runnersOf(
  { leases, workers, now }: FleetView,
  automationsOf: (worker: WorkerRecord) => readonly string[],
): Runner[] {
  const held = new Set(
    leases
      .filter(({ expiresAt }) => expiresAt > now)
      .map(({ incarnation, automation }) => `${incarnation} ${automation}`),
  );
  return workers
    .filter((worker) => workerState(worker, now) !== "offline")
    .flatMap((worker) => {
      const { incarnation, slots } = worker;
      return automationsOf(worker)
        .filter((automation) => held.has(`${incarnation} ${automation}`))
        .map((automation) => ({
          incarnation,
          automation,
          idle: slots.some((slot) => slot.automation === automation && slot.state === "running") ? 0 : 1,
        }));
    })
    .toSorted((a, b) => a.idle - b.idle)
    .map(({ incarnation, automation }) => ({ incarnation, automation }));
}

function usesPool({ uses }: Manifest, pool: string): boolean {
  return Object.values(uses).some((all) => all.some((use) => use.pool !== undefined && use.name === pool));
}

/** Payloads by question; undefined where that cannot be. */
function groupsOf(texts: readonly string[]): string[][] | undefined {
  const groups: string[][] = [];
  let room = 0;
  for (const text of texts) {
    const bytes = Buffer.byteLength(text) + 1;
    if (bytes > MAX_VERDICT_BYTES) return undefined;
    if (bytes > room) {
      groups.push([]);
      room = MAX_VERDICT_BYTES;
    }
    groups.at(-1)?.push(text);
    room -= bytes;
  }
  return groups.length > MOST_QUESTIONS ? undefined : groups;
}

/** The first that is not null; null when all are. */
async function firstOf<T>(all: readonly Promise<T | null>[]): Promise<T | null> {
  return new Promise((resolve, reject) => {
    let left = all.length;
    for (const one of all)
      one.then((value) => {
        left -= 1;
        if (value !== null || left === 0) resolve(value);
      }, reject);
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
