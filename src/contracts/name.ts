import { FleetError } from "../errors.ts";

/** The one grammar for names of automations, streams, queues, pools, topics and locks. */
export const NAME_PATTERN = /^[a-z0-9][a-z0-9._-]{0,127}$/;
/** The grammar of a namespace: a name without dots at the ends, used as `<namespace>:` in keys. */
export const NAMESPACE_PATTERN = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const TOPIC_PATTERN = /^[a-z0-9*][a-z0-9._*-]{0,127}$/;

const RULE =
  "use 1 to 128 characters: lower-case letters, digits, '.', '_' or '-', starting with a letter or digit";

export function isName(value: unknown): value is string {
  return typeof value === "string" && NAME_PATTERN.test(value);
}

/** Returns `value` if it is a name; else throws `FLEET_NAME_INVALID`, naming `what` and the rule. */
export function checkName(what: string, value: unknown): string {
  if (isName(value)) return value;
  throw new FleetError("FLEET_NAME_INVALID", `${what} ${shown(value)} is not a valid name: ${RULE}`);
}

/**
 * `stream:` as a namespace would make `{stream:fleet}:meta` both the registry of that namespace and the meta of a stream `fleet`
 * outside all namespaces. Refused by every back end, so that a fleet can move from one to another.
 */
const RESERVED_NAMESPACES = new Set(["stream", "queue", "pool", "lock", "counter", "limit", "event"]);

/** As {@link checkName}, for a namespace; the empty string means none. */
export function checkNamespace(value: unknown): string {
  if (typeof value === "string" && RESERVED_NAMESPACES.has(value)) {
    throw new FleetError(
      "FLEET_NAME_INVALID",
      `namespace ${shown(value)} is reserved: its keys could be mistaken for those of a ${value}; choose another`,
    );
  }
  if (value === "" || (typeof value === "string" && NAMESPACE_PATTERN.test(value))) return value;
  throw new FleetError(
    "FLEET_NAME_INVALID",
    `namespace ${shown(value)} is not valid: use 1 to 64 characters: lower-case letters, digits, '.', '_' or '-', starting with a letter or digit`,
  );
}

/** A topic that somebody publishes to. Topics under `fleet.` are the framework's own. */
export function checkTopic(value: unknown, options: { own?: boolean } = {}): string {
  const topic = checkName("topic", value);
  if (options.own !== true && topic.startsWith("fleet.")) {
    throw new FleetError(
      "FLEET_NAME_INVALID",
      `topic ${shown(topic)} is reserved: topics under "fleet." are published by the framework itself; choose another prefix`,
    );
  }
  return topic;
}

/** A topic or a pattern: `*` stands for any run of characters, also none; nothing else is special. */
export function checkTopicPattern(value: unknown): string {
  if (typeof value === "string" && TOPIC_PATTERN.test(value)) return value;
  throw new FleetError(
    "FLEET_NAME_INVALID",
    `topic pattern ${shown(value)} is not valid: ${RULE}; '*' matches any run`,
  );
}

function shown(value: unknown): string {
  if (typeof value !== "string") return `(${value === null ? "null" : typeof value})`;
  return JSON.stringify(value.length > 140 ? `${value.slice(0, 140)}…` : value);
}
