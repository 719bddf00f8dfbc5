// What a live process says to payloads, before a command gives them away: as with REST.
import type { Schema } from "../contracts/schema/standard.ts";
import { check, payloadError } from "../contracts/validate.ts";
import { type Validated, VerdictAsker, type VerdictSubject } from "../control/verdicts.ts";
import { SILENT } from "../internal/log.ts";
import type { PayloadIssue } from "../errors.ts";
import type { Store } from "../store/store.ts";

/**
 * Asks about all of them; `"structural"` where nobody could be asked or answered within about a second. Throws the `TypeError` for the first
 * that does not fit; `whereOf` names it.
 */
export async function judged(
  store: Store,
  subject: VerdictSubject,
  values: readonly unknown[],
  whereOf: (at: number) => string,
): Promise<Validated> {
  const asker = new VerdictAsker(store, SILENT);
  try {
    const answer = await asker.ask(
      subject,
      values.map((value) => JSON.stringify(value)),
    );
    if (answer === undefined) return "structural";
    for (const [at, verdict] of answer.entries()) if (verdict !== null) throw refused(whereOf(at), verdict);
    return "full";
  } finally {
    await asker.close();
  }
}

/** The check by what was published, which comes first: it costs nobody anything. */
export async function fits(schema: Schema, value: unknown, where: string): Promise<void> {
  const checked = await check(schema, value);
  if (!checked.ok) throw payloadError(where, checked.issues);
}

function refused(where: string, issues: readonly PayloadIssue[]): Error {
  return payloadError(where, issues.length === 0 ? [{ pointer: "", message: "does not fit" }] : issues);
}
