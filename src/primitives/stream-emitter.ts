import { checkOptions, text, type OptionRules } from "../contracts/options.ts";
import { checkSize, encodePayload } from "../contracts/json.ts";
import { check, payloadError, type Checked } from "../contracts/validate.ts";
import type { InferInput, Schema } from "../contracts/schema/standard.ts";
import type { StreamContract } from "../contracts/stream.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { entryTemplate, type EntryTemplate } from "../protocol/envelope.ts";
import type { StreamPublisher } from "./stream-publisher.ts";

export interface PushOptions {
  /** Id of the entry, 1 to 128 characters; default a new UUIDv7. */
  id?: string;
}
const REMEDY = "send a reference to the data instead, or raise maxPayloadBytes in the contract";
const PUSH: OptionRules<Required<PushOptions>> = { id: text({ max: 128 }) };

/**
 * Checks payloads against the contract and hands them to the publisher in their input form: what the producer gave travels,
 * consumers parse once. Nothing is written unless all of a call's payloads fit.
 */
export class StreamEmitter<S extends Schema> {
  readonly #contract: StreamContract<S>;
  readonly #publisher: StreamPublisher;
  readonly #slotId: number | null;
  readonly #where: string;
  readonly #onPushed: ((count: number) => void) | undefined;

  /** `onPushed` is told of what the store has taken. */
  constructor(
    contract: StreamContract<S>,
    publisher: StreamPublisher,
    slotId: number | null,
    onPushed?: (count: number) => void,
  ) {
    this.#onPushed = onPushed;
    this.#contract = contract;
    this.#publisher = publisher;
    this.#slotId = slotId;
    this.#where = `stream "${contract.name}"`;
  }

  // Not `async`: with one promise per call, and that of its batch, instead of five, a call costs a fifth less.
  emit(payload: InferInput<S>, options?: PushOptions): Promise<{ id: string }> {
    try {
      const { id = uuidv7() } =
        options === undefined ? {} : checkOptions<Required<PushOptions>>(this.#where, options, PUSH);
      const checking = this.#template(payload, id, "payload");
      return checking instanceof Promise
        ? checking.then((template) => this.#push(template))
        : this.#push(checking);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #push(template: EntryTemplate): Promise<{ id: string }> {
    return this.#publisher.push(template, this.#slotId, () => {
      this.#onPushed?.(1);
      return { id: template.id };
    });
  }

  async emitMany(payloads: readonly InferInput<S>[]): Promise<void> {
    const templates: EntryTemplate[] = [];
    for (const [at, payload] of payloads.entries()) {
      const checking = this.#template(payload, uuidv7(), `payload ${at}`);
      templates.push(checking instanceof Promise ? await checking : checking);
    }
    await settled(templates.map((template) => this.#publisher.push(template, this.#slotId, nothing)));
    this.#onPushed?.(templates.length);
  }

  #template(payload: unknown, id: string, what: string): EntryTemplate | Promise<EntryTemplate> {
    const checking = check(this.#contract.schema, payload);
    return checking instanceof Promise
      ? checking.then((checked) => this.#checked(checked, payload, id, what))
      : this.#checked(checking, payload, id, what);
  }

  #checked(checked: Checked<unknown>, payload: unknown, id: string, what: string): EntryTemplate {
    const where = `${this.#where}: ${what}`;
    if (!checked.ok) throw payloadError(where, checked.issues);
    const json = encodePayload(where, payload);
    checkSize(where, json, this.#contract.options.maxPayloadBytes, REMEDY);
    return entryTemplate(id, this.#slotId, json);
  }
}

const nothing = () => undefined;

/** Waits for all, then throws the first failure: no rejection is left unhandled, and none of the pushes is still under way. */
async function settled(pushes: readonly Promise<unknown>[]): Promise<void> {
  const results = await Promise.allSettled(pushes);
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
